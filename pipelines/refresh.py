"""Every table that is stale, in order; one refresh at a time."""

import contextlib
import datetime as dt
import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import Busy, RequestError, UnknownName
from pipelines.locks import held
from pipelines.settings import Settings
from pipelines.stages import STAGES, Stage, is_stale
from pipelines.store.store import Store, Version


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a refresh did about one stage."""

    stage: Stage
    ran: bool
    seconds: float
    versions: list[Version]


def chosen(select: Iterable[str]) -> list[Stage]:
    """The stages of the named groups, tables or stages, in order; all of them where nothing is named.

    Raises UnknownName.
    """
    names = set(select)
    known = {name for stage in STAGES for name in (stage.group, stage.name, *stage.tables)}
    for name in sorted(names - known):
        raise UnknownName("group or table", name, known)
    return [stage for stage in STAGES if not names or names & {stage.group, stage.name, *stage.tables}]


def refresh(
    home: Path, settings: Settings, run: Callable[[Stage], None], select: Iterable[str] = ()
) -> Iterator[Outcome]:
    """Run every stale stage by `run`, and tell of each stage when it is done.

    Raises Busy where another refresh is at work, RequestError where nothing was ever imported.
    """
    stages = chosen(select)
    store = Store(home / "data")
    if not any(store.partitions(table) for table in ("raw_posts", "imported_posts", "imported_dialogues")):
        raise RequestError(
            "there is nothing to refresh: no data set was imported",
            where=home,
            remedy="gongqing import NAME PATH, or gongqing demo",
        )
    with _alone(home):
        for stage in stages:
            started = time.monotonic()
            stale = is_stale(stage, store, settings)
            if stale:
                run(stage)
            versions = [store.version(table) for table in stage.tables]
            yield Outcome(stage, stale, time.monotonic() - started, versions)


@contextlib.contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Hold the home's refresh lock, with a note of who does."""
    path = home / "refresh.lock"
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(held(path, wait=False))
        except BlockingIOError as error:
            holder = json.loads(path.read_text(encoding="utf-8") or "{}")
            raise Busy(
                f"another refresh is at work: process {holder.get('pid')} on {holder.get('host')}, "
                f"since {holder.get('since')}",
                where=path,
                remedy="wait for it, or end that process",
            ) from error
        lock.truncate(0)
        since = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        lock.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}))
        lock.flush()
        yield
