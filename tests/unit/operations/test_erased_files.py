"""Unmanaged files in a home that still hold erased text; and Dagster's databases, where one cannot be cleaned."""

import gzip
import json
import sqlite3
import zipfile
from pathlib import Path

import polars as pl
import pytest
import zstandard

from pipelines.errors import Busy, StorageFull
from pipelines.operations.erase.files import scrub_database, unmanaged_traces
from pipelines.operations.erase.rows import ErasedIds
from pipelines.operations.erase.traces import Scrub, TextTraces

TEXT = "我把钥匙交给门房的那天下着小雪"
LINE = json.dumps({"text": TEXT}) + "\n"


@pytest.fixture
def scrub() -> Scrub:
    return Scrub(TextTraces.of([TEXT]), ErasedIds(["s:1"]), lambda _: "erased")


def test_a_file_with_a_trace_is_named_however_it_is_packed_and_left_alone(tmp_path, scrub):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "text.md").write_text(f"# notes\n{TEXT}\n", encoding="utf-8")
    pl.DataFrame({"column": [[TEXT]]}).write_parquet(folder / "table.parquet")
    pl.DataFrame({"post_id": ["s:2", "s:1"]}).write_parquet(folder / "an_id.parquet")
    with zipfile.ZipFile(folder / "tasks.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tasks.jsonl", LINE)
    (folder / "tasks.jsonl.gz").write_bytes(gzip.compress(LINE.encode()))
    (folder / "tasks.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(LINE.encode()))
    with sqlite3.connect(folder / "review.sqlite3") as database:
        database.execute("CREATE TABLE task (text TEXT)")
        database.execute("INSERT INTO task VALUES (?)", (TEXT,))
    database.close()
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert unmanaged_traces(tmp_path, scrub) == sorted(f"out/{path.name}" for path in before)
    assert len(before) == 7
    assert {path: path.read_bytes() for path in before} == before


def test_files_with_other_texts_and_broken_archives_are_not_named(tmp_path, scrub):
    (tmp_path / "notes.md").write_text(TEXT[:7] + "s:12", encoding="utf-8")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(LINE.encode())[:-9])
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    assert unmanaged_traces(tmp_path, scrub) == []


def test_what_the_erasure_covers_itself_is_not_searched(tmp_path, scrub):
    """Above all the list of posts that are never fetched: it names them."""
    for name in ("takedown.txt", "ledger.sqlite-wal", ".venv/a.md", "data/a.md", "out/data/a.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(TEXT, encoding="utf-8")
    assert unmanaged_traces(tmp_path, scrub) == ["out/data/a.md"]


def database(path: Path, rows: int) -> None:
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE event_logs (event TEXT)")
        made.executemany("INSERT INTO event_logs VALUES (?)", [(TEXT + "。" * 400,)] * rows)
    made.close()


@pytest.mark.drill("disk")
def test_a_full_disk_is_named_and_the_same_call_then_finishes(small_disk, scrub):
    path = small_disk / "index.db"
    database(path, 40)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(256 * 1024 - path.stat().st_size - 4096 * 2))
    with pytest.raises(StorageFull, match="room"):
        scrub_database(path, scrub)
    filler.unlink()
    scrub_database(path, scrub)
    assert TEXT.encode() not in path.read_bytes()


@pytest.mark.drill("race")
def test_a_database_that_another_process_writes_is_busy(tmp_path, monkeypatch, scrub):
    monkeypatch.setattr("pipelines.operations.erase.files._PATIENCE", 0.01)
    path = tmp_path / "index.db"
    database(path, 1)
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Busy, match="end Dagster's web UI"):
            scrub_database(path, scrub)
    other.close()
