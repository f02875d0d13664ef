"""What a home keeps beside tables and releases: Dagster's state, crawls, runs of training, files of its owner's.

Nothing takes a text out of weights, nor out of a tokenizer that was trained on it. So the receipt names the runs on a
release that held it, and those that started from such a model or asked it; their owner removes the models. Unmanaged
files (exports, recordings, notebooks) are named and never touched.
"""

import html
import io
import json
import os
import shutil
import sqlite3
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from pipelines.core.files import held, write_whole
from pipelines.core.home import Home
from pipelines.errors import Busy, StorageFull
from pipelines.operations.erase.places import erase_from_file, run_data
from pipelines.operations.erase.rows import ErasedIds, RowFilter
from pipelines.operations.erase.traces import Scrub, scrub_cell, scrub_file, text_of_cell, unescape
from pipelines.train.runs import CACHE, DATA, LOCK, PAGE, ROLLOUTS, SCORED, learnt_releases, list_runs
from schemas.ids import source_row_id
from schemas.tables import TABLES

_MAGIC = b"SQLite format 3\0"
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
_LINES = {".jsonl", ".json", ".csv", ".html", ".out", ".err", ".log", ".txt"}
_BESIDE = ("-wal", "-shm", "-journal")
_PATIENCE = 60.0  # seconds


def scrub_folder(folder: Path, scrub: Scrub) -> int:
    """Removes traces from every file below `folder`; how many cells and files had some.

    Raises Busy where another process holds a database.
    """
    count = 0
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith(_BESIDE):
            count += scrub_database(path, scrub) if _is_database(path) else scrub_file(path, scrub)
    return count


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def texts_of_folder(folder: Path) -> Iterator[str]:
    """The text of every cell of a database below `folder`, and of every file of lines; nothing is changed."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name.endswith(_BESIDE):
            continue
        if _is_database(path):
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_PATIENCE)) as database:
                for (name,) in database.execute(_TABLES).fetchall():
                    for row in database.execute(f'SELECT * FROM "{name}"'):  # noqa: S608 - names of its own tables
                        yield from filter(None, map(text_of_cell, row))
        elif path.suffix in _LINES:
            yield from path.read_text(encoding="utf-8", errors="replace").splitlines()


def scrub_database(path: Path, scrub: Scrub) -> int:
    """Removes traces from every cell, and from the file free pages and its log; how many cells had some.

    Raises Busy where another process holds it, StorageFull where there is no room to write the file again.
    """
    try:
        database = sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE)
        try:
            database.execute("PRAGMA secure_delete = ON")
            database.execute("BEGIN IMMEDIATE")
            count = sum(_scrub_table(database, name, scrub) for (name,) in database.execute(_TABLES).fetchall())
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
    changes = [
        (column, clean, rowid)
        for rowid, *cells in rows
        for column, cell in zip(columns, cells, strict=True)
        if (clean := scrub_cell(cell, scrub)) != cell
    ]
    for column, clean, rowid in changes:
        database.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (clean, rowid))  # noqa: S608
    return len(changes)


_NOTES = ("items.jsonl", "seen.jsonl", "seen-before.jsonl")


@contextmanager
def no_crawl(home: Path) -> Iterator[None]:
    """Keeps crawls, collections and imports away while the block lasts. Raises Busy where a crawl is at work."""
    with ExitStack() as stack:
        for lock in sorted(Home(home).crawl.glob("*/*/*/.lock")):
            try:
                stack.enter_context(held(lock, wait=False))
            except BlockingIOError as error:
                raise Busy(
                    "a crawl is at work", where=lock.parent, hint="wait for it, or end it: it goes on where it was"
                ) from error
        for source in sorted(Home(home).crawl.glob("*/")):
            stack.enter_context(Home(home).lock(f"crawl-{source.name}"))
        stack.enter_context(Home(home).lock("incoming"))
        yield


def posts_of_crawls(home: Path) -> Iterator[str]:
    """The ids of all posts and answers that the notes of crawls hold."""
    for source in sorted(Home(home).crawl.glob("*/")):
        for path in sorted(source.rglob("*.jsonl")):
            if path.name in _NOTES:
                for line in path.read_bytes().splitlines():
                    with suppress(ValueError):  # half a line of a killed crawl
                        row = json.loads(line)
                        yield source_row_id(source.name, row["source_id"])
                        yield from (answer["answer_id"] for answer in row.get("answers", []))


def add_takedown(home: Path, posts: Iterable[str]) -> None:
    """Posts of sites (`source:source_id`) are never fetched from here on."""
    path = Home(home).takedown
    there = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    new = sorted(set(posts) - set(there))
    if new:
        write_whole(path, "".join(f"{line}\n" for line in [*there, *new]).encode())


def clean_crawls(home: Path, erased: ErasedIds) -> int:
    """Removes what is erased from the folders of crawls; how many lines and pages' files that was.

    Of a source that something is erased from, all raw pages go: in a page of any charset and layout nobody can tell
    what belongs to whom, and what is still needed is fetched again.
    """
    count = 0
    for source in sorted(Home(home).crawl.glob("*/")):
        if not any(name.startswith(f"{source.name}:") for name in erased.ids):
            continue
        for path in sorted(source.rglob("*")):
            if path.name in _NOTES:
                count += _clean_notes(path, source.name, erased)
            elif path.name.startswith("pages.sqlite") or path.suffix == ".part":  # half written by a killed process
                path.unlink()
                count += path.suffix != ".part"
            elif path.name == "unknown" and path.is_dir():
                shutil.rmtree(path)
                count += 1
    return count


def _clean_notes(path: Path, source: str, erased: ErasedIds) -> int:
    """Removes lines of erased posts from a file of JSON lines, and erased answers from the others."""
    changed = 0
    left = []
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            row = json.loads(line)
        except ValueError:
            changed += 1  # half a line of a killed crawl: its post is fetched again
            continue
        answers = [answer for answer in row.get("answers", []) if answer["answer_id"] not in erased]
        if f"{source}:{row['source_id']}" in erased:
            changed += 1
        elif len(answers) < len(row.get("answers", [])):
            changed += 1
            shorter = json.dumps({**row, "answers": answers}, ensure_ascii=False, separators=(",", ":"))
            left.append(shorter.encode("utf-8", "surrogatepass") + b"\n")
        else:
            left.append(line)
    if changed:
        times = path.stat()
        write_whole(path, b"".join(left))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # how old raw pages are counts from it
    return changed


@contextmanager
def no_training(home: Path) -> Iterator[None]:
    """Keeps runs of training from going on or beginning. Raises Busy where one is at work."""
    with ExitStack() as stack:
        try:
            stack.enter_context(Home(home).lock("training", wait=False))
        except BlockingIOError as error:
            where = Home(home).training
            for run in list_runs(home):
                try:
                    with held(run / LOCK, wait=False):
                        pass
                except BlockingIOError:
                    where = run
            raise Busy("a run is training", where=where, hint="wait for it, or end it") from error
        yield


def erase_from_runs(home: Path, row_filter: RowFilter, scrub: Scrub) -> int:
    """Removes rows, rollouts, logs and pages of runs, the caches of killed runs and half-written files; how many files
    had some, or were removed.
    """
    count = 0
    for table in TABLES:
        for path in run_data(home, table):
            before = path.read_bytes()
            erase_from_file(path, table, row_filter)
            count += path.read_bytes() != before
    for run in list_runs(home):
        count += _erase_outputs(run, scrub)
        count += sum(scrub_file(log, scrub) for log in (*sorted(run.glob("log-*.txt")), *(run / SCORED).glob("*.txt")))
        page = run / PAGE
        if page.exists() and scrub(shown := html.unescape(page.read_text(encoding="utf-8"))) != shown:
            page.unlink()  # the command that trained makes it again
            count += 1
        cached = sum(path.is_file() for path in (run / CACHE).rglob("*"))
        shutil.rmtree(run / CACHE, ignore_errors=True)  # the next start copies the rows that are left again
        for part in (path for path in (*run.glob("*.part"), *run.glob(f"{DATA}/*.part")) if path.is_file()):
            part.unlink()
            count += 1
        count += cached
    return count


def _erase_outputs(run: Path, scrub: Scrub) -> int:
    """Removes the lines with a trace from outputs and scores, with all of the same prompt; how many files had any."""
    files = [*sorted((run / ROLLOUTS).glob("*.jsonl")), *sorted((run / SCORED).glob("*.jsonl"))]
    lines = {
        path: [line.decode("utf-8", "surrogateescape") for line in path.read_bytes().splitlines(keepends=True)]
        for path in files
    }
    traced = {line for content in lines.values() for line in content if scrub(line) != line}
    groups = {group for line in traced if (group := _group(line))}
    count = 0
    for path, content in lines.items():
        left = [line for line in content if line not in traced and _group(line) not in groups]
        if len(left) < len(content):
            count += 1
            write_whole(path, "".join(left).encode("utf-8", "surrogateescape"))
    return count


def _group(line: str) -> str | None:
    """The group of an output; None for half a line of a killed process."""
    try:
        return str(json.loads(line)["uid"]).partition("_")[0]
    except (ValueError, KeyError, TypeError):
        return None


def erase_from_review(folder: Path, scrub: Scrub) -> int:
    """Removes traces from what went out to people and lies in the home: whole lines of files of JSON lines, cells of
    databases, words of other texts; what is packed or shows many items in one piece (a sheet, a page) goes whole, for
    the next export makes it again. How many files had some.

    Raises Busy where another process holds a database.
    """
    count = 0
    for path in _files(folder) if folder.is_dir() else ():
        content = path.read_bytes()
        if content.startswith(_MAGIC):
            count += scrub_database(path, scrub) > 0
        elif any(scrub(text) != text for text in _texts(content)):
            count += 1
            if path.suffix == ".jsonl":
                lines = content.decode("utf-8", "surrogateescape").split("\n")
                left = "\n".join(line for line in lines if scrub(line) == line)
                write_whole(path, left.encode("utf-8", "surrogateescape"))
            elif path.suffix in _TEXTS:
                scrub_file(path, scrub)
            else:
                path.unlink()
    return count


def learnt(home: Path, releases: Collection[str]) -> list[str]:
    """The runs that learnt on one of these releases, or from or by a model of such a run; relative to the home."""
    return [str(run.relative_to(home)) for run in list_runs(home) if not set(releases).isdisjoint(learnt_releases(run))]


_PACKED = (b"PAR1", b"PK\x03\x04", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"SQLite format 3")
_TEXTS = (".json", ".yaml", ".txt", ".csv", ".log")
_HEAD = 4096  # bytes: where none of them is 0 a file is a text


def unmanaged_traces(home: Path, scrub: Scrub) -> list[str]:
    """The texts, tables, archives and databases that hold a trace, relative to the home; no pictures, no weights."""
    at = Home(home)
    managed = {at.data, at.releases, at.training, at.crawl, at.erasures, at.review, at.takedown}
    managed |= {*home.glob(f"{at.ledger.name}*")}
    return sorted(
        str(path.relative_to(home))
        for path in _files(home, managed)
        if any(scrub(text) != text for text in _texts(path.read_bytes()))
    )


def _files(folder: Path, managed: Collection[Path] = ()) -> Iterator[Path]:
    """All texts and archives below a folder, without what is hidden or the erasure covers."""
    for path in sorted(set(folder.iterdir()) - set(managed)):
        if path.name.startswith("."):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _files(path)
        elif path.is_file():
            with path.open("rb") as file:
                head = file.read(_HEAD)
            if head.startswith(_PACKED) or b"\0" not in head:
                yield path


def _texts(content: bytes) -> Iterator[str]:
    """The texts of a file, unpacked."""
    try:
        if content[:4] == b"PAR1":
            for batch in pq.ParquetFile(io.BytesIO(content)).iter_batches():
                yield unescape(pl.DataFrame(pl.from_arrow(batch)).write_ndjson().encode())
        elif content[:4] == b"PK\x03\x04":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for name in archive.namelist():
                    yield from _texts(archive.read(name))
        elif content[:2] == b"\x1f\x8b":
            yield from _texts(zlib.decompress(content, wbits=31))
        elif content[:4] == b"\x28\xb5\x2f\xfd":
            with zstandard.ZstdDecompressor().stream_reader(content) as packed:
                yield from _texts(packed.read())
        else:
            yield unescape(content)
    except (pa.ArrowException, zipfile.BadZipFile, zlib.error, zstandard.ZstdError):
        yield unescape(content)
