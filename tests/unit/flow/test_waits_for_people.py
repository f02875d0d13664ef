"""What waits for people, and how much of it there is."""

from pathlib import Path

import polars as pl
import pytest
from table_rows import frame, row_of

from pipelines.flow.people import waits_for_people
from pipelines.flow.refresh import states
from pipelines.review.items import REVIEWED_CHAINS
from pipelines.settings import Settings
from pipelines.store import Store
from schemas.dropped import Lost, dropped
from schemas.reviews import CoeReviews

BEGIN = {"cer": "(gongqing review export cer)", "coe": "(gongqing review export coe)"}


@pytest.fixture
def store(labelled_store: Store, tmp_path: Path) -> Store:
    """A home with candidates and chains, on which nobody has said anything."""
    store = Store(tmp_path / "data")
    for table in ("cer_candidates", "coe_chains"):
        store.write(table, labelled_store.read(table))
    return store


def test_before_there_is_anything_to_judge_nothing_waits(tmp_path):
    assert waits_for_people(Store(tmp_path / "data")) == {}


def test_it_says_how_much_there_is_to_do_and_how_to_begin(store, labelled_store):
    candidates, chains = (store.version(name).rows for name in ("cer_candidates", "coe_chains"))
    assert waits_for_people(store) == {
        "cer_labels": f"waits for people: {candidates} candidates to label {BEGIN['cer']}",
        "coe_reviews": f"waits for people: {chains} chains to review {BEGIN['coe']}",
    }
    assert {name: state for name, state in states(store, Settings()).items() if "people" in state} == (
        waits_for_people(store)
    )
    labels = labelled_store.read("cer_labels").collect()
    undecided = labels.row(0, named=True)
    row_id = "{dialogue_id}#{round}/{candidate}".format(**undecided)
    store.write("cer_labels", labels[1:5], dropped("cer_labels", [Lost("label", row_id, "no_two_agree")]))
    assert waits_for_people(store)["cer_labels"].startswith(f"waits for people: {candidates - 5} candidates")
    posts = store.read("coe_chains").collect()["post_id"].head(2)
    reviews = [row_of(CoeReviews, task_id=one, post_id=one, verdict="accept", labelled="h") for one in posts]
    store.write("coe_reviews", frame(CoeReviews, *reviews))
    assert waits_for_people(store)["coe_reviews"].startswith(f"waits for people: {chains - 2} chains")


def test_where_all_is_said_nothing_waits(store, labelled_store):
    store.write("cer_labels", labelled_store.read("cer_labels"))
    assert "cer_labels" not in waits_for_people(store)


def test_no_more_chains_wait_than_e_kept(store):
    [chain, *_] = store.read("coe_chains").collect().to_dicts()
    many = [chain | {"post_id": f"s:{number}"} for number in range(REVIEWED_CHAINS + 50)]
    store.write("coe_chains", pl.DataFrame(many, schema=store.read("coe_chains").collect_schema()))
    assert waits_for_people(store)["coe_reviews"].startswith(f"waits for people: {REVIEWED_CHAINS} chains")
