"""An erasure from the request to the receipt. Killed at any point, the next one, or `resume`, finishes it."""

import datetime as dt
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path

import polars as pl

from pipelines.core.home import Home
from pipelines.errors import Busy
from pipelines.flow.stages import STAGES
from pipelines.llm.ledger.ledger import Ledger
from pipelines.operations.erase import documents
from pipelines.operations.erase.documents import AtHost, Lost, Plan, Receipt
from pipelines.operations.erase.files import (
    add_takedown,
    clean_crawls,
    erase_from_review,
    erase_from_runs,
    learnt,
    no_crawl,
    no_training,
    scrub_folder,
    unmanaged_traces,
)
from pipelines.operations.erase.places import erase_from_releases, versions
from pipelines.operations.erase.rows import DROPPED, RowFilter
from pipelines.operations.erase.server import scrub_server
from pipelines.operations.erase.survey import Request, survey
from pipelines.operations.erase.traces import Scrub, TextTraces
from pipelines.review import label_studio
from pipelines.review.potato import forget_missing, projects_of, require_stopped
from pipelines.store.store import Store
from pipelines.store.suppression import SuppressionList, alone, require_no_erasure
from schemas.tables import PARTITIONED, TABLES


def erase(home: Path, request: Request) -> list[Receipt]:
    """Erases what a request names, and finishes what was begun before. Receipts, that of the request last.

    Raises Busy while a refresh, a crawl, a run of training, an export or Dagster's web UI is at work, and what `survey`
    raises: then nothing of the request was begun.
    """
    with _alone(home):
        receipts_before = list(_finish_all(home))
        plan, traces = survey(home, Store(Home(home).data), request, SuppressionList(home))
        documents.save_plan(home, plan, traces)
        return [*receipts_before, _finish(home, plan, traces)]


def look(home: Path, request: Request) -> Plan:
    """What an erasure would do; nothing is changed. Raises what `survey` raises."""
    require_no_erasure(home)
    with _alone(home):
        return survey(home, Store(Home(home).data), request, SuppressionList(home))[0]


def resume(home: Path) -> list[Receipt]:
    """Finishes what was begun and killed. Receipts; none where nothing was."""
    with _alone(home):
        return list(_finish_all(home))


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Keeps everybody else from making, crawling, importing, training or exporting. Raises Busy where somebody is."""
    require_stopped([*projects_of(home), *label_studio.folder_of(home).glob("*/")])
    with alone(home, finishing=True), no_crawl(home), no_training(home), ExitStack() as stack:
        try:
            stack.enter_context(Home(home).lock("giving", wait=False))
        except BlockingIOError as error:
            raise Busy(
                "a release is being exported: the receipt could not name its place",
                where=Home(home).lock_file("giving"),
                hint="wait for the export, or end it",
            ) from error
        yield


def _finish_all(home: Path) -> Iterator[Receipt]:
    documents.sweep(home)
    for plan, traces in documents.unfinished(home):
        yield _finish(home, plan, traces)


def _finish(home: Path, plan: Plan, traces: TextTraces) -> Receipt:
    """Does what the plan says. Every step sees what an earlier try has done, and goes on from there."""
    suppression = SuppressionList(home)
    suppression.add(plan.kept_out, plan.wordings)
    add_takedown(home, plan.taken_down)
    row_filter = plan.row_filter(suppression.mask)
    scrub = Scrub(traces, row_filter.erased, suppression.mask)
    lost = list(_erase_from_tables(Store(Home(home).data), plan, row_filter))
    releases = list(erase_from_releases(home, row_filter, scrub, plan.erasure))
    at_hosts = _forget_calls(home, plan)
    had_index = Home(home).index.is_dir()  # of near-duplicates, which earlier versions kept: ids and hashes of texts
    shutil.rmtree(Home(home).index, ignore_errors=True)
    for page in home.glob("report-*.html*"):  # it shows what people wrote, and is made again by a command
        page.unlink()
    shutil.rmtree(Home(home).readings, ignore_errors=True)  # hashes of texts, made again by the next release
    reviews = erase_from_review(Home(home).review, scrub)
    forget_missing(home)
    receipt = Receipt(
        erasure=plan.erasure,
        began=plan.began,
        asked=plan.asked,
        rows=[suppression.code(name) for name in plan.kept_out],
        lost=[*lost, *(of_release for of_release, _ in releases)],
        calls=len(plan.forgotten),
        events=scrub_folder(Home(home).dagster, scrub) + scrub_server(home, scrub),
        runs=erase_from_runs(home, row_filter, scrub),
        reviews=reviews,
        learnt=learnt(home, {of_release.place.rpartition("/")[2] for of_release, _ in releases}),
        crawled=clean_crawls(home, row_filter.erased),
        index=had_index,
        published=[place for _, places in releases for place in places],
        at_hosts=at_hosts,
        elsewhere=[row_filter.erased.masked(name, suppression.mask) for name in unmanaged_traces(home, scrub)],
        ended=dt.datetime.now(dt.UTC),
    )
    documents.finish_plan(home, plan, receipt)
    return receipt


def _erase_from_tables(store: Store, plan: Plan, row_filter: RowFilter) -> Iterator[Lost]:
    """Rewrites every version that holds some of it; tables whose current version that is become stale, with what is
    made of them.
    """
    store.storage.sweep()
    touched = set(plan.touched)
    for table in TABLES:
        for version in versions(store, table):
            if f"{version.name}@{version.version}" not in touched:
                continue
            erased = store.erase(version, partial(_remove, table, row_filter), erasure=plan.erasure)
            for stale in _made_with(table) if version.current else ():
                if store.pointer(stale) is not None:
                    store.make_stale(stale)
            tombstone = erased.manifest.erasures[-1]
            yield Lost(f"{version.name}@{version.version}", tombstone.rows, tombstone.dropped, tombstone.changed)


def _made_with(table: str) -> set[str]:
    """A table, and what is made of it without asking anybody: figures over people's labels hold no row's name that
    would show what they count.
    """
    made = (one.tables for one in STAGES if table in one.parents and (one.structural or not one.asks))
    return {table, *chain.from_iterable(made)} - PARTITIONED


def _remove(table: str, row_filter: RowFilter, part: str, rows: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    return row_filter.split(table if part == "rows" else table + DROPPED, rows)


def _forget_calls(home: Path, plan: Plan) -> list[AtHost]:
    """Deletes every byte of the calls; where files of batches may still be."""
    if not plan.forgotten or not Home(home).ledger.exists():
        return []
    with Ledger(Home(home).ledger) as ledger:
        ledger.forget(plan.forgotten)
        ledger.compact()
        left = ledger.batches.uncleared()
    return [
        AtHost(batch.host, batch.vendor, [name for name in (batch.file, batch.output, batch.errors) if name])
        for batch in left
    ]
