"""A diff, against the same by dictionaries."""

from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from store_rows import TABLE, groups

from pipelines.store import Store
from pipelines.store.forms import diff
from schemas.tables import TABLES

KEY = ["row_id", "round"]
SCHEMA = {
    "row_id": pl.String,
    "round": pl.Int64,
    "said": pl.String,
    "score": pl.Float64,
    "turns": pl.List(pl.Struct({"role": pl.String, "text": pl.String})),
}
FEW = st.sampled_from(["", "a", "b"])
KEYS = st.tuples(FEW, st.integers(0, 2))
CELLS = st.tuples(
    st.none() | FEW,
    st.none() | st.sampled_from([0.0, 0.1, 1.0]),
    st.none() | st.lists(st.none() | st.fixed_dictionaries({"role": FEW, "text": st.none() | FEW}), max_size=2),
)
ROWS = st.dictionaries(KEYS, CELLS, max_size=8)

Rows = dict[tuple[Any, ...], tuple[Any, ...]]


def frame(rows: Rows) -> pl.DataFrame:
    return pl.DataFrame([(*key, *cells) for key, cells in rows.items()], schema=SCHEMA, orient="row")


def by_key(found: pl.DataFrame) -> Rows:
    return {row[:2]: row[2:] for row in found.rows()}


@settings(deadline=None)
@given(ROWS, ROWS)
def test_a_diff_is_what_dictionaries_say(before: Rows, after: Rows) -> None:
    found = diff(frame(before), frame(after), KEY)
    changed = {
        key: ([name for name, a, b in zip(list(SCHEMA)[2:], before[key], after[key], strict=True) if a != b],)
        for key in before.keys() & after.keys()
    }
    assert by_key(found.added) == {key: after[key] for key in after.keys() - before.keys()}
    assert by_key(found.removed) == {key: before[key] for key in before.keys() - after.keys()}
    assert by_key(found.changed) == {key: names for key, names in changed.items() if names[0]}
    assert found.empty == (before == after)
    assert diff(frame(before), frame(dict(reversed(before.items()))), KEY).empty


def test_a_column_that_only_one_has_differs_on_every_common_row() -> None:
    before = frame({("a", 1): ("x", 0.1, None), ("b", 1): ("x", 0.1, None)})
    for one, other in ((before, before.drop("score")), (before.drop("score"), before)):
        found = diff(one, other, KEY)
        assert found.changed["columns"].to_list() == [["score"], ["score"]]
        assert found.added.height == found.removed.height == 0


def test_versions_are_compared_by_the_key_of_their_table_and_partitions_one_by_one(store: Store) -> None:
    before = store.write(TABLE, groups(5))
    said = pl.when(group_id="g00001").then(pl.lit("another")).otherwise("given_at")
    after = store.write(TABLE, groups(7).with_columns(given_at=said).filter(pl.col("group_id") != "g00003"))
    found = store.diff(TABLE, before.version, after.version[:6])
    assert found.added["group_id"].to_list() == ["g00005", "g00006"]
    assert found.removed["group_id"].to_list() == ["g00003"]
    assert found.changed.rows() == [("g00001", ["given_at"])]
    assert store.diff(TABLE, after.version, after.version).empty
    rows = TABLES["imported_posts"].sample(4)
    before = store.write("imported_posts", rows.head(3), partition="a b")
    after = store.write("imported_posts", rows, partition="a b")
    found = store.diff("imported_posts", before.version, after.version, "a b")
    assert (found.added.height, found.removed.height, found.changed.height) == (1, 0, 0)
