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

from pipelines.askers import Askers
from pipelines.errors import Busy, RequestError, UnknownName
from pipelines.llm.asking import Estimate
from pipelines.locks import held
from pipelines.making import estimate, is_stale, waits_for_budget
from pipelines.settings import Settings
from pipelines.stages import STAGES, Stage
from pipelines.store.store import Store, Version
from schemas.tables import PARTITIONED


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a refresh did about one stage. `waits` says why a stale one was left as it is."""

    stage: Stage
    ran: bool
    seconds: float
    versions: list[Version]
    waits: str | None = None


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
    home: Path,
    settings: Settings,
    run: Callable[[Stage], None],
    select: Iterable[str] = (),
    askers: Askers | None = None,
) -> Iterator[Outcome]:
    """Run every stale stage by `run`, and tell of each stage when it is done.

    A stage whose questions would cost money is left where there is no budget, and so is what was never made for it.

    Raises Busy where another refresh is at work, RequestError where nothing was ever imported.
    """
    stages = chosen(select)
    store = Store(home / "data")
    _require_sources(home, store)
    askers = askers or Askers(home, settings.llm)
    with _alone(home):
        waiting: set[str] = set()
        for stage in stages:
            started = time.monotonic()
            stale, waits = False, _waits_for_parents(stage, store, waiting)
            if waits is None and (stale := is_stale(stage, store, settings, askers)):
                waits = waits_for_budget(stage, store, settings, askers)
            if waits is not None:
                waiting.update(stage.tables)
            elif stale:
                run(stage)
            versions = [store.version(table) for table in stage.tables if store.pointer(table) is not None]
            yield Outcome(stage, stale and waits is None, time.monotonic() - started, versions, waits)


def estimates(
    home: Path, settings: Settings, askers: Askers, select: Iterable[str] = ()
) -> Iterator[tuple[Stage, Estimate | None]]:
    """What the questions of each stage that asks would take, as the tables stand now; None: a parent was never made.

    Raises RequestError where nothing was ever imported.
    """
    store = Store(home / "data")
    _require_sources(home, store)
    for stage in chosen(select):
        if stage.asks:
            made = all(store.current(table) for table in stage.parents if table not in PARTITIONED)
            yield stage, estimate(stage, store, settings, askers) if made else None


def _waits_for_parents(stage: Stage, store: Store, waiting: set[str]) -> str | None:
    missing = [table for table in stage.parents if table in waiting and store.pointer(table) is None]
    return f"{missing[0]} was never made" if missing else None


def _require_sources(home: Path, store: Store) -> None:
    if not any(store.partitions(table) for table in ("raw_posts", "imported_posts", "imported_dialogues")):
        raise RequestError(
            "there is nothing to refresh: no data set was imported",
            where=home,
            remedy="gongqing import NAME PATH, or gongqing demo",
        )


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
