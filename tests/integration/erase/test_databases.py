"""Dagster's databases: what is raised where one cannot be cleaned."""

import sqlite3
from pathlib import Path

import pytest

from pipelines.errors import Busy, StorageFull
from pipelines.operations.erase.files import scrub_database
from pipelines.operations.erase.rows import ErasedIds
from pipelines.operations.erase.traces import Scrub, TextTraces

TEXT = "我把钥匙交给门房的那天下着小雪"
SCRUB = Scrub(TextTraces.of([TEXT]), ErasedIds([]), str)


def database(path: Path, rows: int) -> None:
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE event_logs (id INTEGER PRIMARY KEY, event TEXT)")
        made.executemany("INSERT INTO event_logs (event) VALUES (?)", [(TEXT + "。" * 400,)] * rows)
    made.close()


@pytest.mark.drill("disk")
def test_a_full_disk_is_named_and_the_same_call_then_finishes(small_disk):
    path = small_disk / "index.db"
    database(path, 40)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(256 * 1024 - path.stat().st_size - 4096 * 2))
    with pytest.raises(StorageFull, match="room"):
        scrub_database(path, SCRUB)
    filler.unlink()
    scrub_database(path, SCRUB)
    assert TEXT.encode() not in path.read_bytes()


@pytest.mark.drill("race")
def test_a_database_that_another_process_writes_is_busy(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.operations.erase.files._PATIENCE", 0.01)
    path = tmp_path / "index.db"
    database(path, 1)
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Busy, match="end Dagster's web UI"):
            scrub_database(path, SCRUB)
    other.close()
