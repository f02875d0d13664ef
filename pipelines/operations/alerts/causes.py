"""What a home itself shows that somebody should know: causes that stand until they are mended, and the news of a day.

No text of a row is in any of it: a message goes through the hosts of others.
"""

import datetime as dt
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from pipelines.core.home import Home
from pipelines.crawl.collecting import failure_of
from pipelines.crawl.jobs import last_job
from pipelines.errors import DamagedVersion
from pipelines.flow.refresh import states
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.money import amount
from pipelines.operations.doctor import LITTLE_ROOM
from pipelines.settings import Settings
from pipelines.store.store import Store
from pipelines.train.runs import SCORED, list_runs
from schemas.tables import TABLES

NEARLY = 0.8  # of a budget
_RECENT = dt.timedelta(hours=1)
_VERDICTS = 200  # the last ones of a run
_POSTS = ("raw_posts", "imported_posts", "imported_dialogues")
_KEPT = ("clean_posts", "unique_posts", "clean_dialogues", "unique_dialogues")


class Cause(NamedTuple):
    """Something to tell. `key` tells it from others: of each there is one message a window. It is told when it has
    stood for `patience`.
    """

    key: str
    title: str
    details: str = ""
    patience: dt.timedelta = dt.timedelta()


Looks = Mapping[str, Callable[[], Iterator[Cause]]]


def standing_causes(
    home: Path, settings: Settings | None, now: dt.datetime, more: Looks = MappingProxyType({})
) -> list[Cause]:
    """What stands: sources whose last crawl stopped early, open budgets that are nearly spent, tables that are damaged
    or stale, a judge that answers too little, a disk that is nearly full, and what `more` finds. What cannot be looked
    at is a cause itself. Without settings, which could not be read, what they decide is left.
    """
    looks: Looks = {
        "crawls": lambda: _stopped_crawls(home),
        "budgets": lambda: _spent_budgets(home),
        "tables": lambda: _stale_tables(home, settings) if settings else iter(()),
        "files of tables": lambda: _damaged_tables(home),
        "judges": lambda: _silent_judges(home, settings, now) if settings else iter(()),
        "disk": lambda: _full_disk(home),
        **more,
    }
    causes: list[Cause] = []
    for what, look in looks.items():
        try:
            causes += look()
        except Exception as error:  # noqa: BLE001  whatever stands in a file: one look keeps no other from being told
            hint = "gongqing doctor looks at the whole home"
            causes.append(Cause(f"unreadable {what}", f"{what} cannot be looked at: {type(error).__name__}", hint))
    return causes


def digest(home: Path, settings: Settings | None, now: dt.datetime) -> str:
    """The news of the last 24 hours: posts and dialogues that came, what was kept, what models cost, what waits. It
    comes even where the home cannot be read: silence is what has to be noticed.
    """
    try:
        return _news(home, settings, now)
    except Exception as error:  # noqa: BLE001
        return f"the news cannot be told: {type(error).__name__}; gongqing doctor looks at the whole home"


def _news(home: Path, settings: Settings | None, now: dt.datetime) -> str:
    since = now - dt.timedelta(days=1)
    store = Store(Home(home).data)
    lines = []
    for title, tables in (("came", _POSTS), ("kept", _KEPT)):
        changes = [_change(store, table, since) for table in tables]
        lines.append(f"{title}: {'; '.join(filter(None, changes)) or 'nothing'}")
    cost: dict[str, Decimal] = {}
    if Home(home).ledger.exists():
        with Ledger(Home(home).ledger) as ledger:
            for one in ledger.spend():
                if one.day >= since.date().isoformat():
                    cost[one.currency] = cost.get(one.currency, Decimal(0)) + one.cost
    spent = ", ".join(f"{sum_:,.2f} {currency}" for currency, sum_ in sorted(cost.items()) if sum_)
    lines.append(f"models cost since {since.date()} (UTC): {spent or 'nothing'}")
    if settings is None:
        return "\n".join([*lines, "the settings cannot be read: no schedule runs"])
    waits: dict[str, list[str]] = {}
    for table, state in states(store, settings).items():
        if state.startswith("waits"):
            waits.setdefault(state, []).append(table)
    lines += [f"{state}: {', '.join(tables)}" for state, tables in waits.items()]
    return "\n".join(lines)


def _stopped_crawls(home: Path) -> Iterator[Cause]:
    for folder in sorted(Home(home).crawl.glob("*/")):
        job = last_job(folder)
        if job is not None and not job.stats and job.stopped:
            error = failure_of(job)
            yield Cause(f"crawl {job.source} {job.stopped['finish_reason']}", error.what, error.hint)


def _spent_budgets(home: Path) -> Iterator[Cause]:
    if not Home(home).ledger.exists():
        return
    with Ledger(Home(home).ledger) as ledger:
        for one in ledger.budgets():
            taken = one.spent + one.held
            if one.cap and taken >= NEARLY * one.cap:
                share = f"{amount(taken)} of {amount(one.cap)} {one.currency}"
                hint = "gongqing ledger shows by what; with a greater budget the same command goes on"
                yield Cause(f"budget {one.of}", f"the budget {one.of} is nearly spent: {share}", hint)


def _stale_tables(home: Path, settings: Settings) -> Iterator[Cause]:
    known = states(Store(Home(home).data), settings)
    if stale := sorted(table for table, state in known.items() if state.startswith("stale")):
        title = f"{len(stale)} table{'' if len(stale) == 1 else 's'} stay stale: {', '.join(stale)}"
        patience = dt.timedelta(hours=settings.alerts.stale_hours)
        yield Cause("stale", title, "gongqing refresh makes them", patience)


def _damaged_tables(home: Path) -> Iterator[Cause]:
    """Current versions that cannot be read, or whose files are not as long as they were written: `doctor` reads all."""
    store = Store(Home(home).data)
    for table in TABLES:
        for place in store.places(table):
            try:
                version = store.version(table, partition=place) if store.pointer(table, place) else None
                problem = version and store.missing(version)
            except DamagedVersion as error:
                problem = error.what
            if problem:
                yield Cause(f"damaged {table} {place or ''}".strip(), problem, "gongqing doctor says what to do")


def _silent_judges(home: Path, settings: Settings, now: dt.datetime) -> Iterator[Cause]:
    for run in list_runs(home):
        verdicts: list[float] = []
        for path in sorted((run / SCORED).glob("*.jsonl")):
            if now.timestamp() - path.stat().st_mtime <= _RECENT.total_seconds():
                verdicts += _last_verdicts(path)
        lost = 1 - sum(verdicts) / len(verdicts) if verdicts else 0.0
        if lost > settings.rewards.failures:
            hint = "gongqing ledger, and the judge's log in the folder of the run"
            yield Cause(f"judge {run.name}", f"{run.name}: {lost:.0%} of the last outputs have no verdict", hint)


def _last_verdicts(path: Path) -> list[float]:
    start = max(0, path.stat().st_size - (1 << 20))
    with path.open("rb") as file:
        file.seek(start)
        lines = file.read().split(b"\n")[bool(start) : -1]  # the first may be cut, the last is being written
    terms = [json.loads(line)["terms"] for line in lines[-_VERDICTS:]]
    return [one["judge_ok"] for one in terms if "judge_ok" in one]


def _full_disk(home: Path) -> Iterator[Cause]:
    if home.exists() and (free := shutil.disk_usage(home).free) < LITTLE_ROOM:
        yield Cause("disk", f"{free / 1e9:.1f} GB are left on the disk of the home", "gongqing doctor names the home")


def _change(store: Store, table: str, since: dt.datetime) -> str:
    """How many rows a table has, and how many more than it had; nothing of one without a new version."""
    rows = before = 0
    new = False
    for place in store.places(table):
        versions = store.versions(table, place)
        current = next((one for one in versions if one.current), None)
        if current is None:
            continue
        older = [one for one in versions if one.manifest.runs[0].at < since]
        rows += current.rows
        before += current.rows if current in older else older[-1].rows if older else 0
        new |= current not in older
    return f"{table} {rows:,} ({rows - before:+,})" if new else ""
