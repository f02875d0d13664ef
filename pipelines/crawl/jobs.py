"""The jobs of a source: one crawl of one window each, in a folder of its own."""

import datetime as dt
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crawlers.errors import CrawlError
from crawlers.window import Window
from pipelines.crawl.files import figures, make_private
from pipelines.store.store import Version

COLLECTED = "collected"  # in the folder of a job whose posts stand in the store


@dataclass(frozen=True)
class Job:
    """One crawl of one window: what to run, with what environment, and the folder that it fills.

    `taken_over` are versions that were made before it, of what an earlier crawl had brought and nobody collected.
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
        return figures(self.folder / "stats.json")

    @property
    def stopped(self) -> dict[str, Any]:
        """The same figures of a crawl that ended early; empty where it was killed, or never began."""
        return figures(self.folder / "stopped.json")

    @property
    def refused(self) -> dict[str, Any]:
        """Why the crawl could not begin: `what`, `where`, `hint`, `exit_code`; empty where it began."""
        try:
            read = json.loads((self.folder / "refused.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return read if isinstance(read, dict) and "what" in read else {}


def uncollected(of_source: Path) -> list[Job]:
    """Jobs that came to their end, and whose posts nobody took over: who should have was killed in between."""
    left = []
    for of_window in sorted(of_source.glob("*_*")):
        window = _window(of_window.name)
        if window is not None:
            for _, folder in sorted(_numbered(of_window).items()):
                if (folder / "stats.json").exists() and not (folder / COLLECTED).exists():
                    left.append(Job(of_source.name, window, folder, [], {}))
    return left


def job_folder(of_window: Path, asked: dict[str, Any]) -> Path:
    """The last job of the window, where it was broken off, asked for the same and is not emptied, or where it never
    began; else the next.
    """
    jobs = _numbered(of_window)
    last = max(jobs, default=0)
    if last and (not begun(jobs[last]) or _goes_on(jobs[last], asked)):
        return jobs[last]
    folder = of_window / f"{last + 1:04}"
    make_private(folder)
    return folder


def begun(job: Path) -> bool:
    """Whether a crawl has ever been at work in a folder; one that was refused has not."""
    return (job / "job.json").exists()


def _goes_on(job: Path, asked: dict[str, Any]) -> bool:
    if not (job / "items.jsonl").exists() or (job / "stats.json").exists():
        return False
    try:
        before: dict[str, Any] = json.loads((job / "job.json").read_bytes())
        return asked.items() <= before.items()
    except (OSError, ValueError, AttributeError):
        return False  # nobody knows what it was asked for


def _window(name: str) -> Window | None:
    """The window that a folder is for; None for a folder that somebody else has put there."""
    first, _, last = name.partition("_")
    try:
        return Window(dt.date.fromisoformat(first), dt.date.fromisoformat(last))
    except (ValueError, CrawlError):
        return None


def _numbered(of_window: Path) -> dict[int, Path]:
    """The jobs of a window; other folders are not ours."""
    return {int(folder.name): folder for folder in of_window.glob("[0-9]*") if folder.name.isdecimal()}
