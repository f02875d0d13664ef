"""A version is cut into chunks: where some rows change, the others keep their files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from older_home import key_of, put
from polars.testing import assert_frame_equal
from store_rows import TABLE, drops, groups

from pipelines.errors import InvalidRows
from pipelines.store import Store, Version, parquet
from pipelines.store.chunks import of_part
from pipelines.store.parquet import cut
from pipelines.store.storage import Storage


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five rows on the average, and ten at most."""
    monkeypatch.setattr(parquet, "_CHUNK_ROWS", 5)
    monkeypatch.setattr(parquet, "_ROWS_AT_ONCE", 10)


@given(st.sets(st.integers(0, 10**6), max_size=200), st.integers(0, 10**6))
def test_all_rows_are_in_chunks_and_one_more_changes_few_of_them(numbers: set[int], another: int) -> None:
    chunks = []
    for some in (numbers, numbers | {another}):
        frame = pl.DataFrame({"key": sorted(map(str, some))}, schema={"key": pl.String})
        cuts = cut(frame, ["key"])
        assert sum(one.rows for one in cuts) == frame.height
        assert all(0 < one.rows <= 10 for one in cuts) or not some
        assert [one.start for one in cuts] == [sum(one.rows for one in cuts[:n]) for n in range(len(cuts))]
        chunks.append({one.content for one in cuts})
    before, after = chunks
    # The chunk that it falls into, and those behind it that are full, up to the next end that a key chose.
    assert len(after - before) <= 2 + sum(one.rows == 10 for one in cuts)


def test_a_write_links_the_chunks_that_are_there(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    linked: list[str] = []
    link = type(store.storage).link

    def noted(storage: Storage, key: str, staged: Path) -> None:
        linked.append(key)
        link(storage, key, staged)

    monkeypatch.setattr(type(store.storage), "link", noted)
    first = store.write(TABLE, groups(200), drops("p1"))
    more = pl.concat([groups(200), groups(1, "another").with_columns(group_id=pl.lit("g00100a"))]).sort("group_id")
    second = store.write(TABLE, more, drops("p1"))
    one, other = ({file.sha256 for file in version.manifest.files} for version in (first, second))
    assert len(other - one) <= 3
    assert len(second.manifest.files) - len(linked) <= 3
    assert len(second.manifest.files) > 20
    assert_frame_equal(store.read(TABLE).collect(), more)
    for version in (first, second):
        store.verify(version)


def test_a_damaged_chunk_is_written_and_not_linked(store: Store) -> None:
    first = store.write(TABLE, groups(50))
    key = key_of(store, first, first.manifest.files[0])
    put(store.storage, key, store.storage.get(key)[:-1])
    second = store.write(TABLE, groups(50), drops("p1"))
    store.verify(second)
    assert store.write(TABLE, groups(50)).version == first.version
    store.verify(first)


MADE: list[str] = []


def named(name: str) -> pl.DataFrame:
    return groups(30, name).with_columns(group_id=name + pl.col("group_id"))


def written(store: Store, *names: str, code: str = "1", renamed: str = "") -> Version:
    """A version of chunks of 30 rows each; MADE says which were made."""

    def make(numbers: Sequence[int]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        for number in numbers:
            MADE.append(names[number])
            yield named(names[number]), drops(names[number])

    MADE.clear()
    return store.write_chunks(TABLE, [name + renamed for name in names], make, code=code)


def test_chunks_are_made_only_where_they_are_made_from_something_new(store: Store) -> None:
    first = written(store, "a", "b")
    assert MADE == ["a", "b"]
    assert (first.rows, first.dropped, first.manifest.reasons) == (60, 2, {"post: too_short": 2})
    assert written(store, "a", "b").version == first.version
    second = written(store, "a", "c", "b")
    assert MADE == ["c"]
    expected = pl.concat([named(name) for name in ("a", "c", "b")])
    assert_frame_equal(store.read(TABLE).collect(), expected)
    assert store.read_dropped(TABLE).collect()["row_id"].to_list() == ["a", "c", "b"]
    for version in (first, second):
        store.verify(version)
    assert [len(of_part(second.manifest.files, part)) for part in ("rows", "dropped")] == [3, 3]


def test_what_came_to_the_same_by_another_way_is_known_by_its_new_name(store: Store) -> None:
    first = written(store, "a")
    assert written(store, "a", code="2", renamed=" with another code").version == first.version
    assert MADE == ["a"]
    written(store, "a", code="2", renamed=" with another code")
    assert MADE == []


def test_a_table_of_no_chunk_is_empty(store: Store) -> None:
    version = written(store)
    assert (version.rows, store.read(TABLE).collect().height) == (0, 0)
    store.verify(version)


def test_one_key_in_two_chunks_is_refused(store: Store) -> None:
    with pytest.raises(InvalidRows, match="30 rows of splits"):
        store.write_chunks(
            TABLE, ["a", "b"], lambda numbers: ((groups(30 + 10 * number), drops()) for number in numbers)
        )
    assert store.pointer(TABLE) is None
