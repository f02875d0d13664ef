"""Votes that we invented for the samples: how they are read, and how they and their consensus come into the tables."""

import json
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest
from reviewed import KEY

from pipelines.errors import UnreadableFile
from pipelines.llm.providers.written import WRITTEN
from pipelines.operations.review.exporting import export
from pipelines.operations.review.judged import candidate_hash
from pipelines.operations.sample_votes import InventedVote, read_votes, sample_votes, write_sample_votes
from pipelines.review.consensus import QUESTIONS
from pipelines.review.items import cer_items
from pipelines.settings import Settings
from pipelines.store import Store
from schemas.labels import MATCHING

LINE = {
    **{"dialogue_id": "sample:d01", "round": 3, "alias": "gpt-4o", "annotator": "invented-1", "role": "annotator"},
    **{"step1": True, "step2": True, "step3": False, "preference": "first", "seconds": 31.0, "why": "too early"},
}


@pytest.fixture
def store(sample_home: Path, tmp_path: Path) -> Store:
    """Candidates and their rounds, as the sample home has them, said to be written by hand; labelled by nobody."""
    source, store = Store(sample_home / "data"), Store(tmp_path / "data")
    for table in ("sampled_turns", "splits", "coherent_dialogues"):
        store.write(table, source.read(table))
    store.write("cer_candidates", source.read("cer_candidates").with_columns(provider=pl.lit(WRITTEN)))
    return store


def lines(path: Path, *votes: dict) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in votes), encoding="utf-8")
    return path


def of_candidates() -> list[list[InventedVote]]:
    by_key = defaultdict(list)
    for vote in read_votes():
        by_key[vote.dialogue_id, vote.round, vote.alias].append(vote)
    return list(by_key.values())


def test_there_is_a_disagreement_of_every_kind():
    counts: dict[str, int] = defaultdict(int)
    for votes in of_candidates():
        two = [vote for vote in votes if vote.role == "annotator"]
        assert len({vote.annotator for vote in votes}) == len(votes), "never one person twice"
        differing = [name for name in QUESTIONS if len({getattr(vote, name) for vote in two}) > 1]
        preferences = {vote.preference for vote in votes}
        kind = "agreed" if len(two) == 2 else "waits for a second"
        if differing:
            kind = differing[0] if len(differing) == 1 else "several"
            kind = kind if len(votes) == 3 else "waits for a third"
        counts["no two agree" if len(preferences) == len(votes) == 3 else kind] += 1
    kinds = {*QUESTIONS, "several", "no two agree", "waits for a third", "waits for a second", "agreed"}
    assert set(counts) == kinds
    assert counts["agreed"] >= 20
    assert {vote.annotator for vote in read_votes()} == {"invented-1", "invented-2", "invented-3"}


def test_they_become_tasks_votes_and_what_is_agreed_on(store):
    first = write_sample_votes(store, Settings(), KEY)
    again = write_sample_votes(store, Settings(), KEY)
    assert [one.version for one in again] == [one.version for one in first]
    tasks, votes, labels = (store.read(one.table).collect() for one in first)
    assert votes.height == tasks.height > 50
    assert votes.join(tasks, on=["task_id", "annotator", "role"]).height == votes.height
    assert 5 <= labels.filter(pl.col("preference").is_in(MATCHING)).height <= labels.height - 5


def test_what_people_said_stays_and_is_not_outvoted(store, tmp_path):
    write_sample_votes(store, Settings(), KEY)
    votes, labels = (store.read(name).collect() for name in ("cer_votes", "cer_labels"))
    [first, second, *_] = labels.rows(named=True)
    mine = pl.struct("dialogue_id", "round", "candidate") == pl.struct(
        **{name: pl.lit(first[name]) for name in ("dialogue_id", "round", "candidate")}
    )
    store.write("cer_votes", votes.with_columns(annotator=pl.when(mine).then("task_id").otherwise("annotator")))
    other = second | {"candidate": 99, "annotators": ["rater-a", "rater-b"]}
    store.write("cer_labels", pl.DataFrame([*labels.rows(named=True), other], schema=labels.schema))
    write_sample_votes(store, Settings(), KEY, lines(tmp_path / "none.jsonl"))
    left = store.read("cer_labels").collect()
    assert store.read("cer_votes").collect().height == votes.filter(mine).height
    assert left.filter(candidate=99)["annotators"].to_list() == [["rater-a", "rater-b"]]
    write_sample_votes(store, Settings(), KEY)
    assert store.read("cer_labels").collect().height == labels.height + 1


def test_people_are_asked_about_the_rest(store):
    write_sample_votes(store, Settings(), KEY)
    home, before = store.storage.root.parent, store.read("review_tasks").collect()
    exported = export(home, Settings(), "cer", ["a", "b"])
    voted = before.filter(role="annotator").group_by("item_id").len()
    missing = 2 * store.read("cer_candidates").collect().height - voted["len"].sum()
    assert sum(exported.tasks.values()) == missing > 0


def test_a_vote_of_a_hand_that_was_not_asked_or_on_a_models_candidate_is_left_out(store, sample_store, tmp_path):
    votes = read_votes(lines(tmp_path / "votes.jsonl", LINE, LINE | {"alias": "nobody"}))

    def made(source: Store) -> tuple[int, int]:
        names = ("cer_candidates", "sampled_turns", "splits")
        candidates, turns, splits = (source.read(name).collect() for name in names)
        assert candidates.height > 0
        items = {item.item_id: item for item in cer_items(candidates, turns, splits, candidate_hash)[0]}
        tasks, rows = sample_votes(candidates, items, Settings(), KEY, votes)
        return tasks.height, rows.height

    assert made(store) == (1, 1)
    assert made(sample_store) == (0, 0)


def test_a_line_that_is_no_vote_is_named(tmp_path):
    of_a_person, twice = {"annotator": "Anna"}, "the person has voted on the candidate already"
    for change, problem in ((of_a_person, "annotator: "), ({"note": "x"}, "note: "), ({}, twice)):
        path = lines(tmp_path / "votes.jsonl", LINE, LINE | change)
        with pytest.raises(UnreadableFile, match=problem) as error:
            read_votes(path)
        assert str(error.value.where) == f"{path}, line 2"
        assert "dialogue_id, round, alias" in error.value.hint
