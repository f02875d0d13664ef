"""Dagster's state: events, runs and ticks in SQLite, what runs printed in files (`<home>/.dagster`)."""

import sqlite3
import zlib
from pathlib import Path
from typing import Any

from pipelines.errors import Busy, StorageFull
from pipelines.operations.erase.places import rewrite
from pipelines.operations.erase.scrub import Scrub

_MAGIC = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm", "-journal")
_PATIENCE = 60.0  # seconds


def scrub_folder(folder: Path, scrub: Scrub) -> int:
    """Removes traces from every file below `folder`; how many cells and files had some.

    Raises Busy where another process holds a database.
    """
    count = 0
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith(_BESIDE):
            with path.open("rb") as file:
                is_database = file.read(len(_MAGIC)) == _MAGIC
            count += scrub_database(path, scrub) if is_database else scrub_file(path, scrub)
    return count


def scrub_file(path: Path, scrub: Scrub) -> bool:
    """Removes traces from a text file; whether it had any. Other bytes stay as they are."""
    before = path.read_bytes().decode("utf-8", "surrogateescape")
    after = scrub(before)
    if after != before:
        rewrite(path, after.encode("utf-8", "surrogateescape"))
    return after != before


def scrub_database(path: Path, scrub: Scrub) -> int:
    """Removes traces from every cell, and from the file free pages and its log; how many cells had some.

    Raises Busy where another process holds it, StorageFull where there is no room to write the file again.
    """
    try:
        database = sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE)
        try:
            database.execute("PRAGMA secure_delete = ON")
            database.execute("BEGIN IMMEDIATE")
            names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            count = sum(_scrub_table(database, name, scrub) for (name,) in names.fetchall())
            database.execute("COMMIT")
            database.execute("VACUUM")
            if database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                raise _busy(path, "a reader holds the log")
            return count
        finally:
            database.close()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
            raise StorageFull(
                "no room left to rewrite Dagster's state",
                where=path,
                hint=f"free twice as much as the file takes ({path.stat().st_size / 1e6:.1f} MB), then: "
                "gongqing erase --resume",
            ) from error
        raise _busy(path, str(error)) from error


def _busy(path: Path, problem: str) -> Busy:
    return Busy(
        f"another process uses Dagster's state: {problem}",
        where=path,
        hint="end Dagster's web UI and daemon, then: gongqing erase --resume",
    )


def _scrub_table(database: sqlite3.Connection, table: str, scrub: Scrub) -> int:
    rows = database.execute(f'SELECT rowid, * FROM "{table}"')  # noqa: S608 - names of its own tables
    columns = [column[0] for column in rows.description[1:]]
    changes = []
    for rowid, *cells in rows:
        for column, cell in zip(columns, cells, strict=True):
            clean = _clean(cell, scrub)
            if clean != cell:
                changes.append((column, clean, rowid))
    for column, clean, rowid in changes:
        database.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (clean, rowid))  # noqa: S608
    return len(changes)


def _clean(cell: Any, scrub: Scrub) -> Any:
    """A cell without traces; the same where it has none. Dagster compresses some of its documents."""
    if isinstance(cell, str):
        return scrub(cell)
    if isinstance(cell, bytes):
        try:
            text = zlib.decompress(cell).decode()
        except (zlib.error, UnicodeDecodeError):
            return cell
        clean = scrub(text)
        return cell if clean == text else zlib.compress(clean.encode())
    return cell
