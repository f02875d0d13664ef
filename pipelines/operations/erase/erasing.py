"""An erasure from the request to the receipt. Killed at any point, the next one, or `resume`, finishes it."""

import asyncio
import datetime as dt
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import polars as pl

from pipelines.core.home import Home
from pipelines.errors import Busy
from pipelines.llm.ledger.ledger import Ledger
from pipelines.operations.erase import crawled, training
from pipelines.operations.erase import plan as plans
from pipelines.operations.erase import receipt as receipts
from pipelines.operations.erase.databases import scrub_folder
from pipelines.operations.erase.places import versions
from pipelines.operations.erase.plan import Plan
from pipelines.operations.erase.receipt import AtHost, Lost, Receipt
from pipelines.operations.erase.releases import erase_from_releases
from pipelines.operations.erase.request import Request
from pipelines.operations.erase.scrub import Scrub
from pipelines.operations.erase.sieve import DROPPED, Sieve
from pipelines.operations.erase.strangers import still_saying
from pipelines.operations.erase.survey import survey
from pipelines.operations.erase.traces import Runs
from pipelines.store.home_lock import alone
from pipelines.store.store import Store
from pipelines.store.suppression import SuppressionList, require_no_erasure
from schemas.tables import PARTITIONED, TABLES


def erase(home: Path, request: Request) -> list[Receipt]:
    """Erases what is asked for, and finishes what was begun before. Receipts, the one that was asked for last.

    Raises Busy while a refresh, a crawl, or Dagster's web UI is at work, and what `survey` raises: then nothing of the
    request was begun.
    """
    with _nobody_else(home):
        receipts_before = list(_finish_all(home))
        plan, runs = survey(home, Store(Home(home).data), request, SuppressionList(home))
        plans.save(home, plan, runs)
        return [*receipts_before, _finish(home, plan, runs)]


def look(home: Path, request: Request) -> Plan:
    """What an erasure would do; nothing is changed. Raises what `survey` raises."""
    require_no_erasure(home)
    with _nobody_else(home):
        return survey(home, Store(Home(home).data), request, SuppressionList(home))[0]


def resume(home: Path) -> list[Receipt]:
    """Finishes what was begun and killed. Receipts; none where nothing was."""
    with _nobody_else(home):
        return list(_finish_all(home))


@contextmanager
def _nobody_else(home: Path) -> Iterator[None]:
    """Nobody makes, crawls or imports anything meanwhile. Raises Busy where somebody does."""
    with alone(home, finishing=True), crawled.no_crawl(home), training.no_training(home), ExitStack() as stack:
        try:
            stack.enter_context(Home(home).lock("giving", wait=False))
        except BlockingIOError as error:
            raise Busy(
                "a release is being given away: where it is then could not be told",
                where=Home(home).lock_file("giving"),
                hint="wait for the export, or end it",
            ) from error
        yield


def _finish_all(home: Path) -> Iterator[Receipt]:
    plans.sweep(home)
    for plan, runs in plans.unfinished(home):
        yield _finish(home, plan, runs)


def _finish(home: Path, plan: Plan, runs: Runs) -> Receipt:
    """Does what the plan says. Every step finds what an earlier try has done, and goes on from there."""
    keeper = SuppressionList(home)
    keeper.add(plan.kept_out, plan.wordings)
    crawled.take_down(home, plan.taken_down)
    sieve = plan.sieve(keeper.mask)
    scrub = Scrub(runs, sieve.gone, keeper.mask)
    lost = list(_erase_from_tables(Store(Home(home).data), plan, sieve))
    published, of_releases = [], set()
    for of_release, where in erase_from_releases(home, sieve, scrub, plan.erasure):
        lost.append(of_release)
        of_releases.add(of_release.place.rpartition("/")[2])
        published += where
    at_hosts = _forget_calls(home, plan)
    receipt = Receipt(
        erasure=plan.erasure,
        began=plan.began,
        asked=plan.asked,
        rows=[keeper.code(name) for name in plan.kept_out],
        lost=lost,
        calls=len(plan.forgotten),
        events=scrub_folder(Home(home).dagster, scrub),
        runs=training.erase_from_runs(home, sieve, scrub),
        learnt=training.learnt(home, of_releases),
        crawled=crawled.clean(home, sieve.gone),
        index=_remove_index(home),
        published=published,
        at_hosts=at_hosts,
        elsewhere=[sieve.gone.masked(name, keeper.mask) for name in still_saying(home, scrub)],
        ended=dt.datetime.now(dt.UTC),
    )
    receipts.keep(home, receipt)
    plans.done(home, plan)
    return receipt


def _erase_from_tables(store: Store, plan: Plan, sieve: Sieve) -> Iterator[Lost]:
    """Every version that holds some of it is written without; the tables that they are current in become stale."""
    with store.storage.staging():
        pass  # what processes that were killed left half written may hold it as well
    touched = set(plan.touched)
    for table in TABLES:
        for version in versions(store, table):
            if f"{version.name}@{version.version}" not in touched:
                continue
            changed = 0
            if not version.manifest.erased_by(plan.erasure):
                where = (table, version.version, version.partition)
                kept, changed = sieve.left(table, store.read(*where).collect())
                dropped, masked = sieve.left(table + DROPPED, store.read_dropped(*where).collect())
                changed += masked
            else:
                kept = dropped = pl.DataFrame()
            erased = store.erase(version, kept, dropped, erasure=plan.erasure, changed=changed)
            if version.current and table not in PARTITIONED:
                store.make_stale(table)
            tombstone = erased.manifest.erasures[-1]
            yield Lost(f"{version.name}@{version.version}", tombstone.rows, tombstone.dropped, tombstone.changed)


def _forget_calls(home: Path, plan: Plan) -> list[AtHost]:
    """Deletes every byte of the calls; where files of batches may still lie."""
    if not plan.forgotten or not Home(home).ledger.exists():
        return []
    with Ledger(Home(home).ledger) as ledger:
        ledger.forget(plan.forgotten)
        ledger.compact()
        left = asyncio.run(ledger.batches.uncleared())
    return [
        AtHost(batch.host, batch.vendor, [name for name in (batch.file, batch.output, batch.errors) if name])
        for batch in left
    ]


def _remove_index(home: Path) -> bool:
    """Earlier versions kept an index of near-duplicates: ids and hashes of texts."""
    there = Home(home).index.is_dir()
    shutil.rmtree(Home(home).index, ignore_errors=True)
    return there
