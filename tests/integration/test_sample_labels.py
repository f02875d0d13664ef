"""Labels that we invented for the samples: how they are read, and how they come into `cer_labels`."""

import json
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


def lines(path: Path, *labels: dict) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in labels), encoding="utf-8")
    return path


def test_each_is_a_row_about_the_candidate_of_its_hand(store):
    first = write_sample_labels(store, Settings())
    assert write_sample_labels(store, Settings()).version == first.version
    labels = {(one.dialogue_id, one.round, ALIASES.index(one.alias) + 1): one for one in read_labels()}
    assert len(labels) >= 12
    assert 5 <= sum(label.preference in MATCHING for label in labels.values()) <= len(labels) - 5
    rows = store.read("cer_labels").collect()
    assert rows.height > 0
    for row in rows.iter_rows(named=True):
        label = labels[row["dialogue_id"], row["round"], row["candidate"]]
        assert (row["step1"], row["preference"]) == (label.step1, label.preference)
        assert all(name.startswith("invented-") for name in row["annotators"])


def test_what_people_said_stays(store, tmp_path):
    write_sample_labels(store, Settings())
    before = store.read("cer_labels").collect()
    first, by_people = pl.int_range(pl.len()) == 0, pl.lit(["rater-a", "rater-b"])
    annotators = pl.when(first).then(by_people).otherwise("annotators")
    store.write("cer_labels", before.with_columns(annotators=annotators))
    write_sample_labels(store, Settings(), lines(tmp_path / "labels.jsonl"))
    left = store.read("cer_labels").collect()
    assert left["annotators"].to_list() == [["rater-a", "rater-b"]]
    write_sample_labels(store, Settings())
    assert store.read("cer_labels").collect().height == before.height


def test_a_label_of_a_hand_that_was_not_asked_or_of_a_models_candidate_is_left_out(store, sample_store, tmp_path):
    turns = store.read("sampled_turns").collect()
    labels = read_labels(lines(tmp_path / "labels.jsonl", LINE, LINE | {"alias": "nobody"}))
    assert sample_labels(store.read("cer_candidates").collect(), turns, ALIASES, labels).height == 1
    of_models = sample_store.read("cer_candidates").collect()
    assert of_models.height > 0
    assert sample_labels(of_models, turns, ALIASES, read_labels()).is_empty()


def test_a_line_that_is_no_label_is_named(tmp_path):
    of_a_person, twice = {"annotators": ["invented-1", "Anna"]}, "the candidate has a label already"
    for change, problem in ((of_a_person, r"annotators\.1: "), ({"note": "x"}, "note: "), ({}, twice)):
        path = lines(tmp_path / "labels.jsonl", LINE, LINE | change)
        with pytest.raises(UnreadableFile, match=problem) as error:
            read_labels(path)
        assert str(error.value.where) == f"{path}, line 2"
        assert "dialogue_id, round, alias" in error.value.hint
