"""The folder of one window: what a crawl has fetched, so that one that was killed goes on and fetches nothing twice.

===================  ============================================================================================
``job.json``         the request; another one in the same folder is refused
``pages.sqlite``     the pages, compressed (`crawlers.cache`)
``items.jsonl``      the journal: one finished post a line, and what the list showed of it, written at once
``robots.txt``       the robots.txt of each host as it came, with its SHA-256
``unknown/``         pages of a layout that nobody knows yet, compressed
``seen.jsonl``       for the next crawl: id, fingerprint, time of posting of what was listed; what was not read
``stopped.json``     how the last run ended, where it ended early
``refused.json``     why the last run could not begin
``stats.json``       written last: the job is over, and never continued
===================  ============================================================================================

Scrapy's own JOBDIR, killed, has kept nothing of the posts; finished, it fetches nothing (spec/crawling.md §3.3). One
crawl a host at a time on this machine: a site counts the requests of all its processes.
"""

import contextlib
import errno
import fcntl
import gzip
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from crawlers.errors import CrawlError, RequestRefused
from crawlers.options import DAMAGED, Known, Options, read_known
from schemas.ids import digest

DONE = frozenset({"finished", "max_items"})
_LOCK = ".lock"


class Job:
    """An open job folder. Only one process has it at a time, until it closes it or dies."""

    def __init__(self, folder: Path, request: Mapping[str, object]) -> None:
        """Makes or opens `folder`.

        Raises RequestRefused for a folder that can not be made or written, and CrawlError for a job that is over, of
        another request, in use, or damaged.
        """
        self.folder = folder
        self.pages, self.items = folder / "pages.sqlite", folder / "items.jsonl"
        with contextlib.ExitStack() as opened:
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if (lock := try_lock(folder / _LOCK)) is None:
                    raise CrawlError("another crawl is at work in this folder", where=folder, hint="wait for it")
                opened.enter_context(lock)
                self._check(request)
                self.had = self._read_journal()
                self._journal = opened.enter_context(self.items.open("ab", buffering=0))
                for ended in ("stopped.json", "refused.json"):
                    (folder / ended).unlink(missing_ok=True)
            except OSError as error:
                raise RequestRefused(
                    f"the job's folder can not be used: {error.strerror}",
                    where=error.filename or folder,
                    hint="give the crawl a folder that can be made and written",
                ) from None
            self._opened = opened.pop_all()

    def append(self, row: Mapping[str, Any], fingerprint: str | None = None, stated: int = 0, found: int = 0) -> None:
        """Writes the row of a finished post into the journal, at once; what the list showed of it before, and how many
        answers its page states and its pages had.

        Raises OSError for a line that can not be written whole; nothing of it is left.
        """
        entry = {**row, "fingerprint": fingerprint, "stated": stated, "found": found}
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
        # One unbuffered write: a process that is killed leaves a whole line, or half of the last.
        whole = line.encode("utf-8", "surrogatepass")
        before = os.fstat(self._journal.fileno()).st_size
        if self._journal.write(whole) != len(whole):
            # On a disk that is almost full a write takes what there is room for, and is no error.
            self._journal.truncate(before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.items))
        self.had[row["source_id"]] = read_known(entry)

    def keep_robots(self, url: str, body: bytes, status: int, sha256: str, at: datetime) -> None:
        """Keeps a robots.txt as it came, once a content."""
        path = self.folder / "robots.txt"
        mark = f"# gongqing: {url} sha256={sha256} status={status}".encode()
        if mark not in (path.read_bytes() if path.exists() else b""):
            with path.open("ab") as file:
                file.write(mark + f" fetched_at={at.isoformat()}\n".encode() + body.rstrip(b"\n") + b"\n\n")

    def keep_page(self, url: str, body: bytes) -> Path:
        """Saves a page that could not be read, for the author of the next layout."""
        folder = self.folder / "unknown"
        folder.mkdir(exist_ok=True)
        path = folder / f"{digest(url)}.gz"
        compressed = gzip.compress(f"<!-- {url} -->\n".encode("utf-8", "surrogatepass") + body, mtime=0)
        write_whole(path, compressed)
        return path

    def finish(self, seen: Iterable[Mapping[str, object]], stats: Mapping[str, object]) -> None:
        """Writes what the next crawl is to know, and then that this one is over."""
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in seen)
        write_whole(self.folder / "seen.jsonl", lines.encode("utf-8", "surrogatepass"))
        os.fsync(self._journal.fileno())
        write_whole(self.folder / "stats.json", _json(stats))

    def stop(self, stats: Mapping[str, object]) -> None:
        """Notes how a run ended that can be continued."""
        write_whole(self.folder / "stopped.json", _json(stats))

    def close(self) -> None:
        """Closes the journal and unlocks the folder."""
        self._opened.close()

    def _check(self, request: Mapping[str, object]) -> None:
        if (self.folder / "stats.json").exists():
            raise CrawlError(
                "this job is over: it is never continued", where=self.folder, hint="give the crawl a new folder"
            )
        path = self.folder / "job.json"
        if not path.exists():
            write_whole(path, _json(request))
            return
        try:
            before = json.loads(path.read_bytes())
            other = sorted(name for name, value in request.items() if before.get(name) != value)
        except DAMAGED:
            raise CrawlError(
                "the request of the job can not be read", where=path, hint="use a new folder for the job"
            ) from None
        if other:
            raise CrawlError(
                f"the folder belongs to another request: {', '.join(other)} differ",
                where=self.folder,
                hint="give every window a folder of its own",
            )

    def _read_journal(self) -> dict[str, Known]:
        path = self.items
        had: dict[str, Known] = {}
        whole = 0
        path.touch()
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break  # the half line of a process that was killed as it wrote
                try:
                    row = json.loads(line)
                    had[row["source_id"]] = read_known(row)
                except DAMAGED:
                    raise CrawlError(
                        "a line of the journal is damaged",
                        where=f"{path}:{number}",
                        hint="use a new folder for the job",
                    ) from None
                whole += len(line)
        if path.stat().st_size > whole:
            os.truncate(path, whole)
        return had


def request_of(options: Options) -> dict[str, object]:
    """The part of the options that a job is bound to: source, window or ids, address, bounds."""
    return {
        "source": options.site.name,
        "base_url": options.base_url,
        "from": options.window.first.isoformat(),
        "until": options.window.last.isoformat(),
        "max_items": options.args.max_items,
        "ids": options.args.ids,
    }


def expire(folder: Path, older_than: datetime) -> None:
    """Deletes what people wrote from a job's folder that nobody has touched since `older_than`.

    The request, the robots.txt, what the next crawl is to know and the figures stay; so does all of a job at work.
    """
    lock = try_lock(folder / _LOCK)
    if lock is None:
        return
    with lock:
        touched = max(path.stat().st_mtime for path in folder.iterdir() if path.name != _LOCK)
        if touched < older_than.timestamp():
            for path in (*folder.glob("pages.sqlite*"), folder / "items.jsonl"):
                path.unlink(missing_ok=True)
            shutil.rmtree(folder / "unknown", ignore_errors=True)


def note_refusal(folder: Path, error: CrawlError) -> None:
    """Notes in a job's folder, where there is one, why a run could not begin, for the process that started it."""
    if folder.is_dir():
        reason = {"what": error.what, "where": error.where, "hint": error.hint, "exit_code": error.exit_code}
        with contextlib.suppress(OSError):  # a folder that cannot be written may be the very reason
            write_whole(folder / "refused.json", _json(reason))


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str).encode() + b"\n"


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all."""
    scratch = path.with_name(path.name + ".part")
    with scratch.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def lock_host(base_url: str) -> IO[str]:
    """The lock of the host and port of `base_url`; held until the file is closed or the process ends, however it ends.

    Raises CrawlError for a host that another process crawls, and where there is no folder for locks of ours alone.
    """
    parts = urlsplit(base_url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    path = _lock_folder() / f"{re.sub(r'[^a-z0-9.-]', '_', parts.hostname or '')}_{port}.lock"
    file = try_lock(path)
    if file is None:
        raise CrawlError(
            f"another crawl is fetching from {parts.netloc}: process {path.read_text('ascii') or 'unknown'}",
            where=path,
            hint="wait until it has ended: one crawl a host at a time",
        )
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def try_lock(lock: Path) -> IO[str] | None:
    """The open file of a lock, held until it is closed or the process ends; None where another process holds it."""
    file = lock.open("a+", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _lock_folder() -> Path:
    """The folder of this user's locks, the same for a terminal and for a service, which has no folder of a session."""
    folder = Path(tempfile.gettempdir()) / f"gongqing-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise CrawlError(
            f"no folder for the locks of hosts: {error.strerror}", where=folder, hint="set TMPDIR to one that is yours"
        ) from None
    # What stands in a folder of all users may be another's, or a link elsewhere.
    if status.st_uid != os.getuid() or folder.is_symlink():
        raise CrawlError(
            "the folder for the locks of hosts is not ours", where=folder, hint="remove it, or set TMPDIR elsewhere"
        )
    return folder
