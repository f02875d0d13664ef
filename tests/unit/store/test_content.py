"""The version of a table follows from its rows, and from nothing else."""

from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.store.parquet import canonical_hash, cut, version_of
from schemas.table import Dropped
from schemas.tables import TABLES

SPLITS = TABLES["splits"]
TEXT = st.text(st.sampled_from('a",:{}[]\n\\ 共情\u2028null'), max_size=4)
ROWS = st.lists(
    st.tuples(TEXT, st.sampled_from(["train", "test"]), TEXT, st.lists(TEXT, max_size=3)),
    max_size=3,
    unique_by=lambda row: row[0],
)


def frames(rows: list[tuple[Any, ...]], dropped: list[tuple[Any, ...]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    kept = pl.DataFrame(rows, schema=SPLITS.polars_schema(), orient="row").sort("group_id")
    return kept, pl.DataFrame(dropped, schema=Dropped.polars_schema(), orient="row").sort(Dropped.key())


def version(rows: list[tuple[Any, ...]], dropped: list[tuple[Any, ...]]) -> str:
    kept, gone = frames(rows, dropped)
    return version_of(SPLITS, "splits", cut(kept, ["group_id"]), cut(gone, Dropped.key()))


DROPPED = st.lists(
    st.tuples(TEXT, st.just("post"), TEXT, st.just("too_short"), st.none() | TEXT),
    max_size=2,
    unique_by=lambda row: row[:3],
)


@settings(deadline=None)
@given(ROWS, ROWS, DROPPED, DROPPED)
def test_two_contents_have_the_same_version_just_when_they_are_the_same(
    a: list[Any], b: list[Any], gone_a: list[Any], gone_b: list[Any]
) -> None:
    same = sorted(a) == sorted(b) and sorted(gone_a, key=repr) == sorted(gone_b, key=repr)
    assert (version(a, gone_a) == version(b, gone_b)) == same
    one, other = (canonical_hash(SPLITS, "splits", *frames(*rows)) for rows in ((a, gone_a), (b, gone_b)))
    assert (one == other) == same


TWO_GROUPS = [("g1", "train", "posts@1", ["a", "b"]), ("g2", "test", "共情", [])]
A_DROP = [("posts", "post", "p1", "too_short", None)]


def test_a_version_stays_what_it_is() -> None:
    """A version that is written down (a release pins it) means the same rows after an upgrade of polars."""
    assert version(TWO_GROUPS, []) == "c97366a0c54d06f7"
    assert version([], A_DROP) == "1c77f9cda76d2dad"


def test_versions_from_before_there_were_chunks_stay_what_they_are() -> None:
    assert canonical_hash(SPLITS, "splits", *frames(TWO_GROUPS, [])) == "d04df3b27cb2800e"
    assert canonical_hash(SPLITS, "splits", *frames([], A_DROP)) == "d6d998399f372a6f"
