"""A version that lost rows for good: it keeps its name, reads as what is left, and says so."""

import polars as pl
import pytest
from store_rows import TABLE, drops, groups

from pipelines.errors import DamagedVersion
from pipelines.store import Store, parquet

ROWS = groups(50)
LEFT = ROWS.filter(pl.col("group_id") != "g00007")


@pytest.fixture
def version(store: Store):
    """A version of which a row has to go."""
    store.write(TABLE, groups(3, "older"))
    return store.write(TABLE, ROWS, drops("p1", "p2"), code="1")


def leave(kept, dropped=("p2",), changed=3):
    """What removes all other rows, of each file."""

    def remove(part, rows):
        if part == "dropped":
            return rows.filter(pl.col("row_id").is_in(dropped)), 0
        return rows.filter(pl.col("group_id").is_in(kept["group_id"].implode())), changed

    return remove


def erase(store, version, erasure="e1"):
    return store.erase(version, leave(LEFT), erasure=erasure)


def test_it_reads_as_what_is_left_under_its_name(store, version):
    erased = erase(store, version)
    assert (erased.version, erased.current, erased.rows, erased.dropped) == (version.version, True, 49, 1)
    assert store.read(TABLE).collect().equals(LEFT)
    assert store.read_dropped(TABLE, version.version).collect().equals(drops("p2"))
    [tombstone] = erased.manifest.erasures
    assert (tombstone.erasure, tombstone.rows, tombstone.dropped, tombstone.changed) == ("e1", 1, 1, 3)
    assert erased.manifest.runs == version.manifest.runs
    store.verify(erased)
    prefix = f"{TABLE}/{version.version}"
    named = {store.storage.key(prefix, file) for file in erased.manifest.files} | {f"{prefix}/manifest.json"}
    assert set(store.storage.files(prefix)) == named, "the old files are gone"
    assert [one.rows for one in store.versions(TABLE)] == [3, 49]


def test_the_same_erasure_again_changes_nothing_and_another_adds_to_it(store, version):
    erased = erase(store, version)
    assert erase(store, version).manifest == erased.manifest
    twice = store.erase(erased, leave(LEFT.head(10)), erasure="e2")
    assert [(one.erasure, one.rows) for one in twice.manifest.erasures] == [("e1", 1), ("e2", 39)]
    store.verify(twice)


def test_rows_that_are_not_what_was_left_are_found(store, version):
    erased = erase(store, version)
    told = erased.manifest.erasures[0].model_copy(update={"content": "0" * 16})
    key = f"{TABLE}/{version.version}/manifest.json"
    wrong = erased.manifest.model_copy(update={"erasures": [told]})
    assert store.storage.swap(key, store.storage.get(key), wrong.to_bytes())
    with pytest.raises(DamagedVersion, match="the rows are those of version"):
        store.verify(store.version(TABLE))


def test_what_is_written_again_in_full_is_there_in_full(store, version):
    erase(store, version)
    again = store.write(TABLE, ROWS, drops("p1", "p2"), code="2")
    assert (again.version, again.rows, again.manifest.erasures) == (version.version, 50, [])
    assert store.read(TABLE).collect().equals(ROWS)
    assert store.write(TABLE, LEFT, drops("p2")).version != version.version


def test_files_that_lose_nothing_stay_as_they_are(store, monkeypatch):
    monkeypatch.setattr(parquet, "_ROWS_AT_ONCE", 10)
    version = store.write(TABLE, ROWS, drops("p2"))
    erased = erase(store, version)
    changed = [
        number
        for number, (one, other) in enumerate(zip(version.manifest.files, erased.manifest.files, strict=True))
        if one != other
    ]
    assert changed == [0]
    assert len(version.manifest.files) == 6
    store.verify(erased)
