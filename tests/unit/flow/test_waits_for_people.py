"""What waits for people, and how much of it there is."""

from pathlib import Path

import polars as pl
import pytest
from table_rows import frame, row_of

from pipelines.flow.people import waits_for_people
from pipelines.flow.refresh import states
from pipelines.operations.review.judged import items_of
from pipelines.settings import Settings
from pipelines.store import Store
from schemas.dropped import Lost, dropped
from schemas.reviews import CoeReviews

BEGIN = {"cer": "(gongqing review export cer)", "coe": "(gongqing review export coe)"}


@pytest.fixture
def store(labelled_store: Store, tmp_path: Path) -> Store:
    """A home with candidates and chains, on which nobody has said anything."""
    store = Store(tmp_path / "data")
    for table in ("unique_posts", "coherent_dialogues", "splits", "sampled_turns", "cer_candidates", "coe_chains"):
        store.write(table, labelled_store.read(table))
    return store


def test_before_there_is_anything_to_judge_nothing_waits(tmp_path):
    assert waits_for_people(Store(tmp_path / "data")) == {}


def test_it_says_how_much_an_export_gives_out_and_how_to_begin(store, labelled_store):
    items = {kind: items_of(kind, Path(store.storage.root).parent, store)[0] for kind in ("cer", "coe")}
    candidates, chains = len(items["cer"]), len(items["coe"])
    waits = waits_for_people(store)
    assert waits == {
        "cer_labels": f"waits for people: {candidates} candidates to label {BEGIN['cer']}",
        "coe_reviews": f"waits for people: {chains} chains to review {BEGIN['coe']}",
        "agreements": "waits for people: nobody has labelled anything yet (docs/reviewing.md)",
    }
    assert {name: state for name, state in states(store, Settings()).items() if "people" in state} == waits
    labels = labelled_store.read("cer_labels").collect()
    undecided = labels.row(0, named=True)
    row_id = "{dialogue_id}#{round}/{candidate}".format(**undecided)
    store.write("cer_labels", labels[1:5], dropped("cer_labels", [Lost("label", row_id, "no_two_agree")]))
    assert waits_for_people(store)["cer_labels"].startswith(f"waits for people: {candidates - 5} candidates")
    store.write("cer_labels", labels[1:5].with_columns(labelled=pl.lit("what it was")))
    assert waits_for_people(store)["cer_labels"].startswith(f"waits for people: {candidates} candidates")


def test_reviews_of_other_versions_do_not_count(store):
    items, _ = items_of("coe", Path(store.storage.root).parent, store)
    known = {"verdict": "accept", "role": "annotator", "suggested": False}
    of = [(items[0].item_id, items[0].hash), (items[1].item_id, "of another version")]
    rows = [row_of(CoeReviews, task_id=one, post_id=one, labelled=hash_, **known) for one, hash_ in of]
    store.write("coe_reviews", frame(CoeReviews, *rows))
    assert waits_for_people(store)["coe_reviews"].startswith(f"waits for people: {len(items) - 1} chains")


def test_what_is_to_be_taken_down_waits_for_nobody(store):
    home = Path(store.storage.root).parent
    (item, *_), _ = items_of("coe", home, store)
    before = waits_for_people(store)["coe_reviews"]
    (home / "takedown.txt").write_text(f"{item.item_id}\n", encoding="utf-8")
    assert waits_for_people(store)["coe_reviews"] != before


def test_where_all_is_said_nothing_waits(store, labelled_store):
    store.write("cer_labels", labelled_store.read("cer_labels"))
    assert "cer_labels" not in waits_for_people(store)


def test_no_more_chains_wait_than_e_kept(store, monkeypatch):
    monkeypatch.setattr("pipelines.flow.people.REVIEWED_CHAINS", 3)
    assert waits_for_people(store)["coe_reviews"].startswith("waits for people: 3 chains")
