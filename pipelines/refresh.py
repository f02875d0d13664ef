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

from pipelines.askers import PAID, Askers
from pipelines.errors import Busy, DamagedVersion, RequestError, UnknownName
from pipelines.kept_out import require_no_erasure
from pipelines.llm.asking import BUDGET, Estimate
from pipelines.llm.profiles import prices, profile, profiles
from pipelines.locks import held
from pipelines.making import estimate, is_stale, provider_of, waits_for_budget
from pipelines.settings import Settings
from pipelines.stage import Stage
from pipelines.stages import STAGES
from pipelines.store.store import Store, Version


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


def budget_name(select: Iterable[str]) -> str:
    """Whose budget a refresh of these groups, tables or stages spends: what was broken off goes on with its own, and a
    refresh of something else neither takes from it nor ends it.
    """
    asking = [stage.name for stage in chosen(select) if stage.asks]
    everything = [stage.name for stage in STAGES if stage.asks]
    return BUDGET if asking == everything else f"{BUDGET}:{','.join(asking)}"


def refresh(
    home: Path,
    settings: Settings,
    run: Callable[[Stage], None],
    select: Iterable[str] = (),
    askers: Askers | None = None,
) -> Iterator[Outcome]:
    """Run every stale stage by `run`, and tell of each stage when it is done.

    A stage whose questions would cost money is left where there is no budget, and so is what was never made for it.

    Raises Busy where another refresh is at work, RequestError where nothing was ever imported; UnknownPrice before
    anything is spent, where nobody has said what a model costs that a stage may ask.
    """
    stages = chosen(select)
    store = Store(home / "data")
    _require_sources(home, store)
    askers = askers or Askers(home, settings.llm)
    if askers.may_spend:
        _require_prices(stages, store, settings, askers)
    with alone(home):
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
            yield Outcome(
                stage, stale and waits is None, time.monotonic() - started, _current(stage.tables, store), waits
            )


def estimates(
    home: Path, settings: Settings, askers: Askers, select: Iterable[str] = ()
) -> Iterator[tuple[Stage, Estimate | None]]:
    """What the questions of each stage that asks would take, as the tables stand now; None: a parent was never made.

    Raises RequestError where nothing was ever imported, UnknownPrice for all models of which nobody has said it.
    """
    store, stages = Store(home / "data"), chosen(select)
    _require_sources(home, store)
    _require_prices(stages, store, settings, askers)
    for stage in stages:
        if stage.asks:
            made = all(store.current(table) for table in stage.needed)
            yield stage, estimate(stage, store, settings, askers) if made else None


def _require_prices(stages: Iterable[Stage], store: Store, settings: Settings, askers: Askers) -> None:
    """Raises UnknownPrice where the stages may ask for money what nobody has said the price of."""
    paid = [stage for stage in stages if _is_paid(stage, store, settings, askers)]
    if paid:
        known = profiles(settings.llm.profiles)
        prices(profile(known, alias) for stage in paid for alias in stage.models(settings))


def _current(tables: Iterable[str], store: Store) -> list[Version]:
    """The current versions of tables; one whose stage waits may be as damaged as it was, and is left out."""
    found: list[Version] = []
    for table in tables:
        with contextlib.suppress(DamagedVersion):
            found += store.current(table)
    return found


def _is_paid(stage: Stage, store: Store, settings: Settings, askers: Askers) -> bool:
    try:
        return provider_of(stage, store, settings, askers) in PAID
    except DamagedVersion:  # it waits until somebody says who answers
        return False


def _waits_for_parents(stage: Stage, store: Store, waiting: set[str]) -> str | None:
    missing = [table for table in stage.parents if table in waiting and not _current([table], store)]
    return f"{missing[0]} was never made, or is damaged" if missing else None


def _require_sources(home: Path, store: Store) -> None:
    if not any(store.partitions(table) for table in ("raw_posts", "imported_posts", "imported_dialogues")):
        raise RequestError(
            "there is nothing to refresh: no data set was imported",
            where=home,
            remedy="gongqing import NAME PATH, or gongqing demo",
        )


@contextlib.contextmanager
def alone(home: Path, *, finishing: bool = False) -> Iterator[None]:
    """Hold the home's refresh lock, with a note of who does.

    Raises Busy where another refresh is at work, or an erasure is unfinished, unless this is who finishes it.
    """
    path = home / "refresh.lock"
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(held(path, wait=False))
        except BlockingIOError as error:
            holder = json.loads(path.read_text(encoding="utf-8") or "{}")
            raise Busy(
                f"a refresh, a release or an erasure is at work: process {holder.get('pid')} on {holder.get('host')}, "
                f"since {holder.get('since')}",
                where=path,
                remedy="wait for it, or end that process",
            ) from error
        lock.truncate(0)
        since = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        lock.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}))
        lock.flush()
        if not finishing:
            require_no_erasure(home)
        yield
