"""The home of a corpus: where everything lies in it, and its locks. Nobody else spells these paths.

Locks are files that a process holds with flock. A process that takes several takes them in this order, so that no two
processes wait for each other:

    refresh     tables are made, a release, an erasure: one process at a time, the command line's and Dagster's alike
    crawl       a source's, while what a crawl brought is collected
    incoming    an import or a collection, so that no erasure begins between a look at its list and the writing
    training    shared by all runs of training; an erasure holds it alone
    giving      shared by all exports of a release; an erasure holds it alone
    allowance, instance   for a moment: what runs in Dagster may spend, Dagster's first tables
    alerts      while somebody is told: one process at a time
    evaluating  for a moment: figures of an evaluation are read and written
    readings    for a moment: what was read for personal data is written
    ui          the process that serves the web UI

A crawl, and a run of training, hold the `.lock` of their own folder besides (`crawlers.job`,
`pipelines.train.processes`).
"""

import datetime as dt
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pipelines.core.files import held
from pipelines.errors import Busy

# What lies directly in a home, and may hold what people wrote or lead to them: names, and patterns of names.
PRIVATE = (
    *("data", "releases", "training", "crawl", "index", "erasures", "review", "raw", "logs", ".logs_queue"),
    *("evaluations", "readings"),
    *(".dagster", ".dg", ".locks", "author.key", "takedown.txt", "refresh.lock", "ledger.sqlite*"),
    *("recordings*.jsonl", "allowance.json", "alerts.json", "report-*.html"),
)
_LOOK_AGAIN = 0.2  # seconds between two looks at a lock that another process holds


_mine = threading.local()  # `refreshing`: the homes whose refresh lock a thread holds


class _Path:
    """A path below the folder of a home."""

    def __init__(self, *parts: str) -> None:
        self._parts = parts

    def __get__(self, home: "Home", _: type["Home"]) -> Path:
        return home.folder.joinpath(*self._parts)


@dataclass(frozen=True)
class Home:
    """The paths and locks of one folder."""

    folder: Path

    data = _Path("data")  # the tables (`pipelines.store`)
    releases = _Path("releases")  # the releases, and what is known of their copies elsewhere
    training = _Path("training")  # a folder a run of training
    evaluations = _Path("evaluations")  # inspect's logs of dialogue benchmarks, a folder an evaluation
    crawl = _Path("crawl")  # a folder a source, in it one a window, in it one a job
    erasures = _Path("erasures")  # plans, receipts, and the suppression list
    index = _Path("index")  # an index of near-duplicates, which earlier versions kept
    readings = _Path("readings")  # which texts hold personal data, by hash (`pipelines.release.readings`)
    review = _Path("review")  # what went out to people, a folder a batch; who they are
    dagster = _Path(".dagster")  # Dagster's state
    under_way = _Path(".dagster", "under_way")  # an empty file a command that runs a run of Dagster, by its process id
    dagster_yaml = _Path("dagster.yaml")  # how Dagster is to keep its state
    ledger = _Path("ledger.sqlite")  # every call of a model
    # Posts that are never fetched, nor released: `source:id`, or an id alone, one a line; `#` begins a remark.
    takedown = _Path("takedown.txt")
    allowance = _Path("allowance.json")  # what the runs in Dagster were allowed to spend
    alerts = _Path("alerts.json")  # what somebody was told of, and when

    def lock_file(self, name: str) -> Path:
        """The file of a lock: one of those above; a crawl's is `crawl-SOURCE`."""
        return self.folder / "refresh.lock" if name == "refresh" else self.folder / ".locks" / name

    @contextmanager
    def lock(self, name: str, *, wait: bool = True, shared: bool = False) -> Iterator[IO[str]]:
        """Hold a lock; gives its open file, for a note of who holds it.

        Raises BlockingIOError where another holds it and `wait` is false.
        """
        with held(self.lock_file(name), wait=wait, shared=shared) as file:
            yield file

    @contextmanager
    def refreshing(self, waits: Callable[[str], None] | None = None) -> Iterator[None]:
        """Hold the refresh lock, with a note of who does. A thread that holds it already goes on.

        With `waits` it waits for another process to end, and reports it by this; without, Busy is raised at once.
        """
        place, refreshing = self.folder.resolve(), _mine.__dict__.setdefault("refreshing", set())
        if place in refreshing:
            yield
            return
        with ExitStack() as stack:
            self._take_refresh(stack, waits)
            refreshing.add(place)
            try:
                yield
            finally:
                refreshing.remove(place)

    def _take_refresh(self, stack: ExitStack, waits: Callable[[str], None] | None) -> None:
        path, reported = self.lock_file("refresh"), False
        while True:
            try:
                lock = stack.enter_context(self.lock("refresh", wait=False))
                break
            except BlockingIOError as error:
                holder = _holder(path)
                what = f"a refresh, a release or an erasure is at work: {holder}"
                if waits is None:
                    raise Busy(what, where=path, hint="wait for it, or end that process") from error
                if not reported:
                    waits(what)
                reported = True
                time.sleep(_LOOK_AGAIN)
        lock.truncate(0)
        since = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        lock.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}))
        lock.flush()


def _holder(path: Path) -> str:
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # it is being written
        note = {}
    return f"process {note.get('pid')} on {note.get('host')}, since {note.get('since')}"
