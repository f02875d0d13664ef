"""The jobs of a source, one crawl of one window each, and their files: damage is named, rights are their owner's."""

import datetime as dt
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crawlers.dates import Window
from crawlers.errors import CrawlError
from pipelines.core.files import write_whole
from pipelines.errors import CrawlFailed
from pipelines.store.store import Version

COLLECTED = "collected"  # in the folder of a job whose posts are in the store


@dataclass(frozen=True)
class Job:
    """One crawl of one window: what to run, with what environment, and the folder that it fills.

    `taken_over` are versions that were made before it, of the posts of an earlier job that nobody had collected.
    """

    source: str
    window: Window
    folder: Path
    command: list[str]
    environment: dict[str, str] = field(repr=False)  # it holds the key of the pseudonyms
    taken_over: tuple[Version, ...] = ()

    @property
    def stats(self) -> dict[str, Any]:
        """The figures of the crawl; empty where it has not come to its end."""
        return _figures(self.folder / "stats.json")

    @property
    def stopped(self) -> dict[str, Any]:
        """The same figures of a crawl that ended early; empty where it was killed, or never began."""
        return _figures(self.folder / "stopped.json")

    @property
    def refused(self) -> dict[str, Any]:
        """Why the crawl could not begin: `what`, `where`, `hint`, `exit_code`; empty where it began."""
        try:
            reason = json.loads((self.folder / "refused.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return reason if isinstance(reason, dict) and "what" in reason else {}


def uncollected(source_folder: Path) -> Iterator[Job]:
    """Jobs that came to their end, and whose posts nobody collected: their parent was killed in between."""
    for window_folder in sorted(source_folder.glob("*_*")):
        window = _window(window_folder.name)
        for _, folder in sorted(_numbered(window_folder).items() if window else ()):
            if window and (folder / "stats.json").exists() and not (folder / COLLECTED).exists():
                yield Job(source_folder.name, window, folder, [], {})


def last_job(source_folder: Path) -> Job | None:
    """The job of a source that was last at work, and has ended; None where there is none."""
    ended: dict[float, Job] = {}
    for window_folder in source_folder.glob("*_*"):
        if window := _window(window_folder.name):
            for folder in _numbered(window_folder).values():
                for file in (folder / "stats.json", folder / "stopped.json"):
                    if file.exists():
                        ended[file.stat().st_mtime] = Job(source_folder.name, window, folder, [], {})
    return ended[max(ended)] if ended else None


def job_folder(window_folder: Path, request: dict[str, Any]) -> Path:
    """The window's last job, where it was broken off with the same request or never began; else the next."""
    jobs = _numbered(window_folder)
    last = max(jobs, default=0)
    if last and (not begun(jobs[last]) or _can_continue(jobs[last], request)):
        return jobs[last]
    folder = window_folder / f"{last + 1:04}"
    make_private(folder)
    return folder


def begun(job: Path) -> bool:
    """Whether a crawl has ever been at work in a folder; one that was refused has not."""
    return (job / "job.json").exists()


def _can_continue(job: Path, request: dict[str, Any]) -> bool:
    if not (job / "items.jsonl").exists() or (job / "stats.json").exists():
        return False
    try:
        before: dict[str, Any] = json.loads((job / "job.json").read_bytes())
        return request.items() <= before.items()
    except (OSError, ValueError, AttributeError):
        return False  # its request is damaged


def _window(name: str) -> Window | None:
    """The window that a folder is for, of lists or of a walk over ids; None for an unmanaged folder."""
    days = re.fullmatch(r"([0-9-]+)_([0-9-]+)(?:_[0-9]+-[0-9]+)?", name)
    try:
        return Window(*map(dt.date.fromisoformat, days.groups())) if days else None
    except (ValueError, CrawlError):
        return None


def _numbered(window_folder: Path) -> dict[int, Path]:
    """The jobs of a window; other folders are unmanaged."""
    return {int(folder.name): folder for folder in window_folder.glob("[0-9]*") if folder.name.isdecimal()}


def read_lines(path: Path, key: str, hook: Callable[[dict[str, Any]], Any] | None = None) -> Iterator[dict[str, Any]]:
    """The lines of a file, if there is one, each an object with `key`; CrawlFailed for another line, naming it."""
    if not path.exists():
        return
    # Lines of bytes: a text may hold what Python takes for the end of a line, and half of a character.
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line.decode("utf-8", "replace"), object_hook=hook)
                row[key]
            except (ValueError, KeyError, TypeError):
                raise CrawlFailed(
                    "a line of what was crawled is damaged",
                    where=f"{path}:{number}",
                    hint="remove the line, and run the crawl again: its post is fetched again",
                ) from None
            yield row


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Writes a row a line, the file whole or not at all."""
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())


def make_private(folder: Path) -> None:
    """Makes a folder, and what is missing above it, for nobody but their owner."""
    if not folder.exists():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _figures(path: Path) -> dict[str, Any]:
    """The figures of a crawl; empty where there is no file. Raises CrawlFailed for a damaged one."""
    if not path.exists():
        return {}
    try:
        figures: dict[str, Any] = json.loads(path.read_bytes())
        figures["finish_reason"]
    except (ValueError, KeyError, TypeError):
        raise CrawlFailed(
            "the figures of a crawl are damaged",
            where=path,
            hint="remove the file, and run the crawl again: it continues",
        ) from None
    return figures
