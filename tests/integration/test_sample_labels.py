"""Labels that we invented for the samples: how they are read, and how they come into `cer_labels`."""

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from pipelines.errors import UnreadableFile
from pipelines.llm.providers.written import WRITTEN
from pipelines.operations.sample_labels import read_labels, sample_labels, write_sample_labels
from pipelines.settings import Settings
from pipelines.store import Store
from schemas.labels import MATCHING

ALIASES = Settings().annotate.cer
LINE = {
    **{"dialogue_id": "sample:d01", "round": 3, "alias": "gpt-4o", "step1": True, "step2": True, "step3": False},
    **{"preference": "first", "annotators": ["invented-1", "invented-2"], "consensus": "agreed", "why": "too early"},
}


@pytest.fixture
def store(sample_home: Path, tmp_path: Path) -> Store:
    """Candidates and their rounds, as the sample home has them, said to be written by hand; labelled by nobody."""
    source, store = Store(sample_home / "data"), Store(tmp_path / "data")
    store.write("sampled_turns", source.read("sampled_turns"))
    store.write("cer_candidates", source.read("cer_candidates").with_columns(provider=pl.lit(WRITTEN)))
    return store


def lines(path: Path, *said: dict) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in said), encoding="utf-8")
    return path


def test_the_labels_are_a_dozen_and_more_of_right_and_wrong_ones():
    said = read_labels()
    assert len(said) >= 12
    assert {label.alias for label in said} == set(ALIASES)
    assert len({(label.step1, label.step2, label.step3) for label in said}) >= 4
    by_preference = Counter(label.preference in MATCHING for label in said)
    assert min(by_preference[True], by_preference[False]) >= 5


def test_each_is_a_row_about_the_candidate_of_its_hand(store):
    first = write_sample_labels(store, Settings())
    assert write_sample_labels(store, Settings()).version == first.version
    rows = store.read("cer_labels").collect()
    told = {(label.dialogue_id, label.round, ALIASES.index(label.alias) + 1): label for label in read_labels()}
    assert rows.height > 0
    for row in rows.iter_rows(named=True):
        label = told[row["dialogue_id"], row["round"], row["candidate"]]
        assert (row["step1"], row["preference"]) == (label.step1, label.preference)
        assert all(name.startswith("invented-") for name in row["annotators"])


def test_what_people_said_stays(store, tmp_path):
    write_sample_labels(store, Settings())
    before = store.read("cer_labels").collect()
    by_people = pl.lit(["rater-a", "rater-b"])
    first = pl.int_range(pl.len()) == 0
    store.write(
        "cer_labels",
        before.with_columns(annotators=pl.when(first).then(by_people).otherwise("annotators")),
    )
    write_sample_labels(store, Settings(), lines(tmp_path / "labels.jsonl"))
    left = store.read("cer_labels").collect()
    assert left["annotators"].to_list() == [["rater-a", "rater-b"]]
    write_sample_labels(store, Settings())
    assert store.read("cer_labels").collect().height == before.height


def test_a_label_of_a_hand_that_was_not_asked_is_left_out(store, tmp_path):
    candidates, turns = (store.read(name).collect() for name in ("cer_candidates", "sampled_turns"))
    said = read_labels(lines(tmp_path / "labels.jsonl", LINE, LINE | {"alias": "nobody"}))
    assert sample_labels(candidates, turns, ALIASES, said).height == 1


def test_a_candidate_of_a_model_is_not_labelled(sample_store):
    candidates, turns = (sample_store.read(name).collect() for name in ("cer_candidates", "sampled_turns"))
    assert candidates.height > 0
    assert sample_labels(candidates, turns, ALIASES, read_labels()).is_empty()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"step1": "yes"}, "step1: Input should be a valid boolean"),
        ({"preference": "third"}, "preference: Input should be 'first'"),
        ({"annotators": ["invented-1", "Anna"]}, r"annotators\.1: String should match"),
        ({"note": "x"}, "note: Extra inputs are not permitted"),
        ({}, "the candidate has a label already"),
    ],
)
def test_a_line_that_is_no_label_is_named(change, told, tmp_path):
    path = lines(tmp_path / "labels.jsonl", LINE, LINE | change)
    with pytest.raises(UnreadableFile, match=told) as error:
        read_labels(path)
    assert str(error.value.where) == f"{path}, line 2"
    assert "dialogue_id, round, alias" in error.value.hint
