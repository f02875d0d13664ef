"""After a crawl: what it brought is laid over what stands, day by day.

A post that has not changed keeps its first `fetched_at`, one that has (a late answer) makes a new version of its day,
and what the crawl did not ask for stays, unless the takedown list names it.
"""

import datetime as dt
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from crawlers.dates import SHANGHAI
from crawlers.options import read_takedown
from crawlers.sites import sites
from pipelines.core.code_version import code_version
from pipelines.core.home import Home
from pipelines.crawl.files import lines, make_private, write_lines
from pipelines.crawl.jobs import COLLECTED, Job
from pipelines.errors import CrawlFailed, RequestError
from pipelines.store.store import Store, Version
from pipelines.store.suppression import SuppressionList, require_no_erasure
from schemas.labels import PRECISIONS
from schemas.posts import RawPosts

log = logging.getLogger(__name__)

TABLE = "raw_posts"
_AGAIN = "run it again: it goes on where it was"
_REMEDIES = {
    "blocked": "leave the site alone for a day, then run it again; no challenge is ever solved",
    "unreachable": f"look whether the site and the network are there, then {_AGAIN}",
    "too_many_lost": f"the site fails to give its posts: look at it, wait an hour, then {_AGAIN}",
    "unwritten": f"make room on the disk, then {_AGAIN}",
    "unknown_layout": "the site has changed its pages: those that could not be read are saved in unknown/ of the job",
    "robots_forbidden": "its robots.txt does not allow it: nothing is to be done but to ask its owners",
}


def partition(source: str, day: dt.date) -> str:
    """The partition of `raw_posts` for the posts of one day."""
    return f"{source}@{day}"


def collect(
    home: Path,
    store: Store,
    job: Job,
    warn: Callable[[str], object] = log.warning,
    exit_code: int | None = None,
) -> list[Version]:
    """Writes what a finished crawl has brought; gives a version for each day that it has posts of, earliest first.

    Posts that the takedown list names by now are not written, and of the days that are written those that stand there
    are taken out; `warn` is told of them, by id.

    Raises CrawlFailed where the crawl was blocked, was broken off, or failed, and what it brought waits in its folder;
    RequestError where it was asked for wrongly and did not begin. `exit_code` is that of its process, where known.
    """
    if not job.stats:
        raise _failed(job, exit_code)
    gone = pl.col("source_id").is_in(list(taken_down(home, job.source)))
    came = brought(job.folder / "items.jsonl").filter(~gone)
    versions, taken_out = [], []
    with Home(home).lock(f"crawl-{job.source}"), Home(home).lock("incoming"):
        require_no_erasure(home)
        came, _ = SuppressionList(home).sift(came, TABLE)
        stand = days_of(store, job.source)
        fresh = came.join(stand, on="post_id", how="left").with_columns(
            # A post stays on the day where it was first put, however a page may round its date later on.
            day=pl.coalesce("day", _day_of(pl.col("posted_at"), pl.col("fetched_at")))
        )
        for (day,), rows in sorted(fresh.partition_by("day", as_dict=True).items()):
            place = partition(job.source, day)
            before = standing(store, place)
            taken_out += before.filter(gone)["post_id"].to_list()
            versions.append(_write(store, job, place, _merged(before.filter(~gone), rows.drop("day"))))
        _remember(Home(home).crawl / job.source / "seen.jsonl", job)
        (job.folder / COLLECTED).touch(mode=0o600)
    if taken_out:
        told = "1 post" if len(taken_out) == 1 else f"{len(taken_out):,} posts"
        names = ", ".join(taken_out)
        warn(f"{told} of takedown.txt taken out of {TABLE}; older versions still have what was there: {names}")
    return versions


def taken_down(home: Path, source: str) -> frozenset[str]:
    """The ids of the source that are never fetched, and not kept. The list is made where it is missing."""
    path = Home(home).takedown
    make_private(home)
    path.touch(mode=0o600)
    return read_takedown(path, source, sites())


def standing(store: Store, place: str) -> pl.DataFrame:
    """The rows of a partition; none where it was never written."""
    if store.pointer(TABLE, place) is None:
        return RawPosts.create_empty()
    return store.read(TABLE, partition=place).collect()


def brought(journal: Path) -> pl.DataFrame:
    """The posts of a journal, the last of each id. What else a line has (what the list showed) is the crawl's own."""
    rows = {row["post_id"]: row for row in lines(journal, "post_id", _timed)}
    return RawPosts.cast(pl.DataFrame(list(rows.values()), schema=RawPosts.polars_schema(), orient="row"))


def days_of(store: Store, source: str) -> pl.DataFrame:
    """`post_id`, `day`: where each post of the source stands."""
    found = [pl.DataFrame(schema={"post_id": pl.String, "day": pl.Date})]
    for place in store.partitions(TABLE):
        of, _, day = place.rpartition("@")
        if of == source and store.pointer(TABLE, place) is not None:
            ids = store.read(TABLE, partition=place).select("post_id").collect()
            found.append(ids.with_columns(day=pl.lit(dt.date.fromisoformat(day))))
    return pl.concat(found)


def _failed(job: Job, exit_code: int | None) -> CrawlFailed | RequestError:
    """Why a crawl has no end, and what to do about it."""
    stopped, refused = job.stopped, job.refused
    if refused and not stopped and exit_code in (None, refused.get("exit_code")):
        kind = RequestError if refused.get("exit_code") == RequestError.exit_code else CrawlFailed
        return kind(
            f"the crawl of {job.source} could not begin, nothing was crawled: {refused['what']}",
            where=refused.get("where") or job.folder,
            hint=refused.get("hint") or _AGAIN,
        )
    if not stopped:
        how = "" if exit_code is None else f" (its process ended with {_ended_with(exit_code)})"
        return CrawlFailed(
            f"the crawl of {job.source} was broken off, or could not begin{how}: its last words stand on standard "
            "error; in Dagster, under the step's stderr",
            where=job.folder,
            hint=_AGAIN,
        )
    reason = str(stopped["finish_reason"])
    sign = f" ({stopped['blocked']})" if stopped.get("blocked") else ""
    return CrawlFailed(
        f"the crawl of {job.source} ended early: {reason}{sign}, after {stopped.get('pages', 0):,} pages and "
        f"{stopped.get('items', 0):,} posts",
        where=job.folder,
        hint=_REMEDIES.get(reason, _AGAIN),
    )


def _ended_with(exit_code: int) -> str:
    return f"exit code {exit_code}" if exit_code >= 0 else f"signal {-exit_code}"


def _merged(before: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of a day once `rows` are laid over those that stood there."""
    known = before.join(rows.select("post_id"), on="post_id", how="semi").select(
        "post_id", first="fetched_at", said_at="posted_at", said_precision="posted_at_precision"
    )
    # What stands may be the newer: a job that was broken off is gone on with after the next one.
    newer = rows.join(known, on="post_id", how="left").filter(
        pl.col("first").is_null() | (pl.col("first") <= pl.col("fetched_at"))
    )
    # As posts grow old pages round their dates ("3 天前"): the finer date stays.
    finer = pl.col("said_at").is_not_null() & (_coarseness("said_precision") < _coarseness("posted_at_precision"))
    # And with the first date and the first `fetched_at` a row that says the same is the same row.
    first_seen = newer.with_columns(
        latest=pl.col("fetched_at"),
        fetched_at=pl.coalesce("first", "fetched_at"),
        posted_at=pl.when(finer).then("said_at").otherwise("posted_at"),
        posted_at_precision=pl.when(finer).then("said_precision").otherwise("posted_at_precision"),
    )
    same = first_seen.select(before.columns).join(before, on=before.columns, how="semi", nulls_equal=True)
    changed = first_seen.filter(~pl.col("post_id").is_in(same["post_id"].implode())).with_columns(fetched_at="latest")
    kept = before.filter(~pl.col("post_id").is_in(changed["post_id"].implode()))
    return pl.concat([kept, RawPosts.cast(changed.select(before.columns))])


def _coarseness(precision: str) -> pl.Expr:
    """How coarse a date is: 0 for one to the second. Where nothing is said of it, it is the coarsest."""
    ranks = {name: rank for rank, name in enumerate(PRECISIONS)}
    return pl.col(precision).cast(pl.String).replace_strict(ranks, default=len(ranks), return_dtype=pl.Int8)


def _write(store: Store, job: Job, place: str, rows: pl.DataFrame) -> Version:
    return store.write(
        TABLE,
        rows,
        partition=place,
        code=code_version("crawlers.run"),
        settings={"source": job.source, "window": [str(job.window.first), str(job.window.last)]},
        note={name: job.stats.get(name) for name in ("items", "pages", "robots", "finish_reason")},
    )


def _timed(item: dict[str, Any]) -> dict[str, Any]:
    times = {name: item[name] for name in ("posted_at", "fetched_at") if isinstance(item.get(name), str)}
    return item | {name: dt.datetime.fromisoformat(said) for name, said in times.items()}


def _day_of(posted_at: pl.Expr, fetched_at: pl.Expr) -> pl.Expr:
    """The day of posting in Shanghai; of fetching, where the page shows no date."""
    return pl.coalesce(posted_at, fetched_at).dt.convert_time_zone(SHANGHAI.key).dt.date()


def _remember(path: Path, job: Job) -> None:
    """What the lists of a job showed, unless a job that began later has looked at the same post.

    What the job itself was told goes with it: where that is gone, all is remembered already.
    """
    told = job.folder / "seen-before.jsonl"
    if not told.exists():
        return
    began = told.stat().st_mtime
    known = {line["source_id"]: line for line in lines(path, "source_id")}
    for line in lines(job.folder / "seen.jsonl", "source_id"):
        if known.get(line["source_id"], {}).get("began", 0.0) <= began:
            known[line["source_id"]] = {**line, "began": began}
    write_lines(path, known.values())
    told.unlink()
