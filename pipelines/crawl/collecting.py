"""After a crawl: its posts are merged into `raw_posts`, day by day, and their fields compared with the days before.

A post that has not changed keeps its first `fetched_at`, one that has (a late answer) makes a new version of its day,
and a post that the crawl did not request stays, unless the takedown list names it.
"""

import datetime as dt
import logging
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from crawlers.dates import SHANGHAI
from crawlers.options import read_takedown
from crawlers.sites import sites
from pipelines.core.code_version import code_version
from pipelines.core.home import Home
from pipelines.crawl.jobs import COLLECTED, Job, begun, make_private, read_lines, write_lines
from pipelines.errors import CrawlFailed, RequestError
from pipelines.store.store import Store, Version
from pipelines.store.suppression import SuppressionList, require_no_erasure
from schemas.labels import PRECISIONS
from schemas.posts import RawPosts

log = logging.getLogger(__name__)

TABLE = "raw_posts"
_AGAIN = "run it again: it continues where it was"
_HINTS = {
    "blocked": "leave the site alone for a day, then run it again; no challenge is ever solved",
    "unreachable": f"look whether the site and the network are there, then {_AGAIN}",
    "too_many_lost": f"the site fails to give its posts: look at it, wait an hour, then {_AGAIN}",
    "unwritten": f"make room on the disk, then {_AGAIN}",
    "unknown_layout": "the site has changed its pages: those that could not be read are saved in unknown/ of the job",
    "nothing_read": "not one post could be read: look at the log, and at unknown/ of the job; after a walk over ids, "
    "whether the site has any of them",
    "list_too_long": "the list, or the ids of the range, go on and on: crawl fewer days, or ids nearer to them",
    "answers_missing": "look at the page of a post that the log names: a selector or the pager has changed, or [crawl] "
    "missing_share is too low for this site; the same command then reads such posts again",
    "posts_missing": "look at the list: its pager has changed, or the site counts what it does not show ([crawl] "
    "missing_share); then remove the folder of the job, and crawl again",
    "robots_forbidden": "its robots.txt does not allow it: nothing is to be done but to ask its owners",
    "robots": "its robots.txt can not be read, and without one nothing is allowed: look at it, or write to its owners",
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
    """Writes the posts of a finished crawl; gives a version for each day that it has posts of, earliest first.

    Posts that the takedown list names by now are not written, and are taken out of the days that are written; `warn`
    gets a message with their ids.

    Raises CrawlFailed where the crawl was blocked, was broken off, or failed, and its posts wait in its folder;
    RequestError where the request was wrong and it did not begin. `exit_code` is that of its process, where known.
    """
    if not job.stats:
        raise failure_of(job, exit_code)
    suppressed = pl.col("source_id").is_in(list(taken_down(home, job.source)))
    new = read_journal(job).filter(~suppressed)
    versions, taken_out = [], []
    settings = {"source": job.source, "window": [str(job.window.first), str(job.window.last)]}
    note = {name: job.stats.get(name) for name in ("items", "pages", "robots", "finish_reason")}
    with Home(home).lock(f"crawl-{job.source}"), Home(home).lock("incoming"):
        require_no_erasure(home)
        new, _ = SuppressionList(home).sift(new, TABLE)
        dated = new.join(days_of(store, job.source), on="post_id", how="left").with_columns(
            # A post stays on its first day, however a page may round its date later on; else it is that of posting in
            # Shanghai or, where the page shows no date, of fetching.
            day=pl.coalesce("day", pl.coalesce("posted_at", "fetched_at").dt.convert_time_zone(SHANGHAI.key).dt.date())
        )
        for (day,), rows in sorted(dated.partition_by("day", as_dict=True).items()):
            place = partition(job.source, day)
            before = stored(store, place)
            taken_out += before.filter(suppressed)["post_id"].to_list()
            merged = _merge(before.filter(~suppressed), rows.drop("day"))
            code = code_version("crawlers.run")
            versions.append(store.write(TABLE, merged, partition=place, code=code, settings=settings, note=note))
        _remember(Home(home).crawl / job.source / "seen.jsonl", job)
        (job.folder / COLLECTED).touch(mode=0o600)
    if taken_out:
        n_posts = "1 post" if len(taken_out) == 1 else f"{len(taken_out):,} posts"
        names = ", ".join(taken_out)
        warn(f"{n_posts} of takedown.txt taken out of {TABLE}; older versions still have what was there: {names}")
    return versions


def taken_down(home: Path, source: str) -> frozenset[str]:
    """The ids of the source that are never fetched, and not kept. An empty list is made where there is none."""
    path = Home(home).takedown
    make_private(home)
    path.touch(mode=0o600)
    return read_takedown(path, source, sites())


def stored(store: Store, place: str) -> pl.DataFrame:
    """The rows of a partition; none where it was never written."""
    if store.pointer(TABLE, place) is None:
        return RawPosts.create_empty()
    return store.read(TABLE, partition=place).collect()


def read_journal(job: Job) -> pl.DataFrame:
    """The posts of a job, the last of each id, without what else a line has (what the list showed)."""
    rows = {row["post_id"]: row for row in read_lines(job.folder / "items.jsonl", "post_id", _parse_times)}
    return RawPosts.cast(pl.DataFrame(list(rows.values()), schema=RawPosts.polars_schema(), orient="row"))


def days_of(store: Store, source: str) -> pl.DataFrame:
    """`post_id`, `day`: the partition of each post of the source."""
    frames = [pl.DataFrame(schema={"post_id": pl.String, "day": pl.Date})]
    for place in store.partitions(TABLE):
        name, _, day = place.rpartition("@")
        if name == source and store.pointer(TABLE, place) is not None:
            ids = store.read(TABLE, partition=place).select("post_id").collect()
            frames.append(ids.with_columns(day=pl.lit(dt.date.fromisoformat(day))))
    return pl.concat(frames)


def failure_of(job: Job, exit_code: int | None = None) -> CrawlFailed | RequestError:
    """The error of a crawl that did not come to its end."""
    stopped, refused = job.stopped, job.refused
    if refused and not stopped and exit_code in (None, refused.get("exit_code")):
        kind = RequestError if refused.get("exit_code") == RequestError.exit_code else CrawlFailed
        return kind(
            f"the crawl of {job.source} could not begin, nothing was crawled: {refused['what']}",
            where=refused.get("where") or job.folder,
            hint=refused.get("hint") or "mend what it names, then start the crawl again",
        )
    if not stopped:
        end = f"exit code {exit_code}" if exit_code is None or exit_code >= 0 else f"signal {-exit_code}"
        how = "" if exit_code is None else f" (its process ended with {end})"
        return CrawlFailed(
            f"the crawl of {job.source} was broken off, or could not begin{how}: its last lines are on standard "
            "error; in Dagster, under the step's stderr",
            where=job.folder,
            hint=_AGAIN if begun(job.folder) else "nothing was fetched: mend what these lines name first",
        )
    reason = str(stopped["finish_reason"])
    sign = f" ({stopped['blocked']})" if stopped.get("blocked") else ""
    if counts := stopped.get({"answers_missing": "answers", "posts_missing": "list_posts"}.get(reason, "")):
        sign = f" ({counts['found']:,} of {counts['stated']:,} that pages state)"
    return CrawlFailed(
        f"the crawl of {job.source} ended early: {reason}{sign}, after {stopped.get('pages', 0):,} pages and "
        f"{stopped.get('items', 0):,} posts",
        where=job.folder,
        hint=_HINTS.get(stopped.get("blocked") or reason, _HINTS.get(reason, _AGAIN)),
    )


def _merge(before: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of a day once `rows` have replaced those of `before`."""
    known = before.join(rows.select("post_id"), on="post_id", how="semi").select(
        "post_id", first="fetched_at", first_at="posted_at", first_precision="posted_at_precision"
    )
    # A stored row may be the newer: a job that was broken off is continued after the next one.
    newer = rows.join(known, on="post_id", how="left").filter(
        pl.col("first").is_null() | (pl.col("first") <= pl.col("fetched_at"))
    )
    # As posts grow old pages round their dates ("3 天前"): the finer date stays.
    finer = pl.col("first_at").is_not_null() & (_coarseness("first_precision") < _coarseness("posted_at_precision"))
    # With the first date and the first `fetched_at` an unchanged row is equal to the stored one.
    first_seen = newer.with_columns(
        latest=pl.col("fetched_at"),
        fetched_at=pl.coalesce("first", "fetched_at"),
        posted_at=pl.when(finer).then("first_at").otherwise("posted_at"),
        posted_at_precision=pl.when(finer).then("first_precision").otherwise("posted_at_precision"),
    )
    same = first_seen.select(before.columns).join(before, on=before.columns, how="semi", nulls_equal=True)
    changed = first_seen.filter(~pl.col("post_id").is_in(same["post_id"].implode())).with_columns(fetched_at="latest")
    kept = before.filter(~pl.col("post_id").is_in(changed["post_id"].implode()))
    return pl.concat([kept, RawPosts.cast(changed.select(before.columns))])


def _coarseness(precision: str) -> pl.Expr:
    """How coarse a date is: 0 for one to the second; an unknown precision is the coarsest."""
    ranks = {name: rank for rank, name in enumerate(PRECISIONS)}
    return pl.col(precision).cast(pl.String).replace_strict(ranks, default=len(ranks), return_dtype=pl.Int8)


def _parse_times(item: dict[str, Any]) -> dict[str, Any]:
    times = {name: item[name] for name in ("posted_at", "fetched_at") if isinstance(item.get(name), str)}
    return item | {name: dt.datetime.fromisoformat(time) for name, time in times.items()}


def _remember(path: Path, job: Job) -> None:
    """Adds what the lists of a job showed, unless a job that began later has read the same post."""
    # Deleted last: where it is missing, all is remembered already.
    given = job.folder / "seen-before.jsonl"
    if not given.exists():
        return
    began = given.stat().st_mtime
    known = {line["source_id"]: line for line in read_lines(path, "source_id")}
    for line in read_lines(job.folder / "seen.jsonl", "source_id"):
        if known.get(line["source_id"], {}).get("began", 0.0) <= began:
            known[line["source_id"]] = {**line, "began": began}
    write_lines(path, known.values())
    given.unlink()


# When a field counts as lost. All four are ours. Of 20 posts a share of one half varies by 0.11 (its standard deviation
# is √(0.25/20)), so a fall by 0.3 is no chance; and a median of fewer than three days is that of one odd day.
_MAY_FALL = 0.3
_ENOUGH_ROWS = 20
_ENOUGH_DAYS = 3
_DAYS_BEFORE = 7
# None of these depends on the age of a post, as the number of its answers does. That all answers vanish is an error of
# the page parsers, where a page states how many there are.
_OF_POSTS = {
    "title": pl.col("title") != "",
    "description": pl.col("description") != "",
    **{name: pl.col(name).is_not_null() for name in ("topic", "author", "posted_at")},
}
_OF_ANSWERS = {f"answers.{name}": pl.col(name).is_not_null() for name in ("author", "posted_at", "likes")}


@dataclass(frozen=True)
class Coverage:
    """How often a field is filled in the posts of a crawl, and the median of the days before it: shares, 0 … 1.

    `share` is None where no post came, `before` where there are too few posts or days to judge by.
    """

    field: str
    share: float | None
    before: float | None

    @property
    def holds(self) -> bool:
        """Whether it is filled about as often as before, or can not be judged."""
        return self.share is None or self.before is None or self.share >= self.before - _MAY_FALL

    def __str__(self) -> str:
        if self.share is None or self.before is None:
            return "too few to judge"
        return f"{self.share:.0%} (the week before: {self.before:.0%})"


def coverage(store: Store, job: Job) -> list[Coverage]:
    """How often the fields of a crawl's posts are filled, all its days together, against the week before.

    The week is the seven days before the last day of the window, as stored, without the posts of this crawl.
    """
    new = read_journal(job)
    days = [partition(job.source, job.window.last - dt.timedelta(days=n)) for n in range(1, _DAYS_BEFORE + 1)]
    before = [stored(store, day).join(new, on="post_id", how="anti") for day in days]
    return [
        *_compare(_OF_POSTS, new, before),
        *_compare(_OF_ANSWERS, _answers(new), [_answers(day) for day in before]),
    ]


def _compare(fields: Mapping[str, pl.Expr], new: pl.DataFrame, before: list[pl.DataFrame]) -> Iterator[Coverage]:
    means = {name: filled.mean() for name, filled in fields.items()}
    days = [rows for rows in before if rows.height]
    enough = new.height >= _ENOUGH_ROWS and len(days) >= _ENOUGH_DAYS
    now, *then = (rows.select(**means).row(0, named=True) for rows in (new, *days))
    for name in fields:
        yield Coverage(name, now[name], statistics.median(day[name] for day in then) if enough else None)


def _answers(posts: pl.DataFrame) -> pl.DataFrame:
    """The answers of posts, one a row."""
    return posts.filter(pl.col("answers").list.len() > 0).select(pl.col("answers").explode()).unnest("answers")
