"""Checks that warn of a table that is empty, shrank, or is not what its version before was."""

from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from pipelines.defs import trends
from pipelines.defs.resources import HomeResource
from pipelines.store import Store
from schemas.dropped import Lost, dropped
from schemas.table import Dropped

TABLE = "ecot_chains"


@pytest.fixture
def rows(sample_store: Store) -> pl.DataFrame:
    """A hundred chains."""
    chains = sample_store.read(TABLE).collect()
    many = pl.concat([chains] * (100 // chains.height + 1)).head(100)
    return many.with_columns(post_id=pl.format("made:{}", pl.int_range(pl.len())))


def lost(reason: str, count: int) -> pl.DataFrame:
    return dropped(TABLE, [Lost("post", f"out:{reason}{number}", reason) for number in range(count)])


def warned(store: Store) -> set[str]:
    """The checks that do not hold for the current version."""
    return {name for name, (holds, _) in trends.find_trends(store.version(TABLE), store).items() if not holds}


def test_a_first_version_and_one_that_grew_are_as_they_should_be(store, rows):
    store.write(TABLE, rows.head(40), lost("risk", 4))
    assert warned(store) == set()
    store.write(TABLE, rows, lost("risk", 9))
    assert warned(store) == set()


def test_an_empty_table_is_warned_of_where_something_came_in(store, rows):
    store.write(TABLE, rows.clear())
    assert warned(store) == set(), "nothing came in"
    store.write(TABLE, rows.clear(), lost("not_asked_yet", 5))
    assert warned(store) == set(), "it waits"
    store.write(TABLE, rows.clear(), lost("risk", 5))
    assert warned(store) == {"not_empty"}
    store.write(TABLE, rows.head(2))
    store.write(TABLE, rows.clear(), lost("not_asked_yet", 6))
    assert warned(store) == {"not_empty"}, "it had rows before"


def test_a_table_that_lost_more_than_a_third_is_warned_of_and_a_small_one_is_not(store, rows):
    store.write(TABLE, rows.head(90))
    store.write(TABLE, rows.head(60))
    assert warned(store) == set()
    store.write(TABLE, rows.head(39))
    assert warned(store) == {"not_shrunk"}
    store.write(TABLE, rows.head(29))
    store.write(TABLE, rows.head(3))
    assert warned(store) == set()


def test_texts_that_are_shorter_and_reasons_that_are_more_frequent_are_warned_of(store, rows):
    texts = ("situation", "motivation", "strategy", "answer")
    store.write(TABLE, rows, lost("risk", 10))
    by = [pl.col(name).str.head((pl.col(name).str.len_chars() * 0.6).cast(pl.Int64)) for name in texts]
    store.write(TABLE, rows.with_columns(by), lost("risk", 10))
    _, shown = trends.find_trends(store.version(TABLE), store)["not_drifted"]
    assert warned(store) == {"not_drifted"}
    assert shown["mean_chars"] < 0.75 * shown["mean_chars_before"]
    assert "mean length" in shown
    store.write(TABLE, rows, lost("risk", 11))
    store.write(TABLE, rows, lost("risk", 50))
    _, shown = trends.find_trends(store.version(TABLE), store)["not_drifted"]
    assert warned(store) == {"not_drifted"}
    assert shown["post: risk"] == "10% of what came in, now 33%"


def test_what_waited_for_a_budget_and_was_asked_at_last_is_no_drift(store, rows):
    store.write(TABLE, rows.head(40), lost("not_asked_yet", 60))
    store.write(TABLE, rows, Dropped.create_empty())
    assert warned(store) == set()


def test_a_version_is_compared_with_the_one_before_it_also_where_an_older_one_was_promoted(store, rows):
    first = store.write(TABLE, rows.head(40))
    second = store.write(TABLE, rows.head(80))
    store.promote(TABLE, first.version)
    assert trends.version_before(store.version(TABLE), store) is None
    assert trends.version_before(store.version(TABLE, second.version), store).version == first.version


def test_the_checks_warn_and_block_nothing(tmp_path: Path, rows):
    home = HomeResource(path=str(tmp_path))
    store = home.store()
    check = next(one for one in trends.checks if {key.asset_key for key in one.check_keys} == {dg.AssetKey(TABLE)})
    assert not any(spec.blocking for spec in check.check_specs)
    assert all(result.passed for result in check(home=home)), "never made"
    store.write(TABLE, rows)
    store.write(TABLE, rows.head(5))
    failed = [result for result in check(home=home) if not result.passed]
    assert [(one.check_name, one.severity) for one in failed] == [("not_shrunk", dg.AssetCheckSeverity.WARN)]
    assert (failed[0].metadata["rows"].value, failed[0].metadata["rows_before"].value) == (5, 100)
    home.left.add(TABLE)
    assert all(result.passed for result in check(home=home)), "a command that left it as it stood has nothing to check"
