"""A crawl of one window becomes versions of `raw_posts`: another process crawls, this one merges what it brought.

A partition is a source and a day of posting in Shanghai. What a crawl brings is laid over what stands there: a post
that has not changed keeps its first `fetched_at`, one that has (a late answer) makes a new version of its day, and what
the crawl did not ask for stays.

    <home>/crawl/<source>/seen.jsonl             what lists showed when last looked at: nothing unchanged is fetched
    <home>/crawl/<source>/<window>/<number>/     the job of one crawl: its pages for some days, its posts, its figures
    <home>/takedown.txt                          ids that are never fetched
"""

import datetime as dt
import json
import os
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from crawlers.dates import SHANGHAI
from crawlers.job import expire, write_whole
from crawlers.sites import sites
from crawlers.window import Window, today
from pipelines.code_version import code_version
from pipelines.errors import CrawlFailed, RequestError, UnknownName
from pipelines.imports import author_key
from pipelines.locks import held
from pipelines.settings import Crawl
from pipelines.store.store import Store, Version
from schemas.posts import RawPosts

TABLE = "raw_posts"
_COLLECTED = "collected"  # in the folder of a job whose posts stand in the store
_MAY_FALL = 0.3  # of a field's share against the week before: ours


@dataclass(frozen=True)
class Job:
    """One crawl of one window: what to run, with what environment, and the folder that it fills."""

    source: str
    window: Window
    folder: Path
    command: list[str]
    environment: dict[str, str]

    @property
    def stats(self) -> dict[str, Any]:
        """The figures of the crawl; empty where it has not come to an end."""
        path = self.folder / "stats.json"
        read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return read


def partition(source: str, day: dt.date) -> str:
    """The partition of `raw_posts` for the posts of one day."""
    return f"{source}@{day}"


def prepare(
    home: Path,
    store: Store,
    source: str,
    window: Window,
    settings: Crawl,
    *,
    base_url: str | None = None,
    max_items: int | None = None,
    delays: bool = True,
) -> Job:
    """The job of a window: the one that was broken off, where its pages and posts are still there, else a new one.

    Before that, what a finished job brought and nobody collected is written, and raw pages that are too old go.

    Args:
        home: Where the author key, the takedown list and the jobs are.
        store: What is held already: of that nothing unchanged is fetched.
        source: A site of crawlers/sites.
        window: The days of posting.
        settings: Contact, and how many days raw pages stay.
        base_url: Another address of the site: its replica's.
        max_items: Posts at most.
        delays: Whether the site's delay is kept; without it only this machine is crawled.

    Raises:
        UnknownName: for a source that there is not.
        RequestError: without a key for the authors' pseudonyms.
    """
    if source not in sites():
        raise UnknownName("source", source, sites())
    key = author_key(home)
    if key is None:
        raise RequestError(
            "a crawl makes pseudonyms of authors, and there is no key for them",
            where=home / "author.key",
            remedy="set GONGQING_AUTHOR_KEY to at least 16 characters that nobody can guess, and keep them",
        )
    of_source = home / "crawl" / source
    for left in _uncollected(of_source):
        collect(home, store, left)
    expire(of_source, dt.datetime.now(dt.UTC) - dt.timedelta(days=settings.keep_pages_days))
    asked = {"base_url": (base_url or sites()[source].base_url).rstrip("/"), "max_items": max_items}
    folder = _job_folder(of_source / f"{window.first}_{window.last}", asked)
    seen = folder / "seen-before.jsonl"
    if not seen.exists():
        _write_lines(seen, _worth_knowing(store, source, of_source / "seen.jsonl", window))
    takedown = home / "takedown.txt"
    takedown.touch()
    command = [sys.executable, "-m", "crawlers.run", source]
    options = {
        "--from": window.first,
        "--until": window.last,
        "--job": folder,
        "--seen": seen,
        "--takedown": takedown,
        "--base-url": base_url,
        "--max-items": max_items,
        "--contact": settings.contact,
        "--delays": None if delays else "off",
    }
    for name, value in options.items():
        if value is not None:
            command += [name, str(value)]
    return Job(source, window, folder, command, {**os.environ, "GONGQING_AUTHOR_KEY": key.decode()})


def collect(home: Path, store: Store, job: Job) -> list[Version]:
    """Writes what a finished crawl has brought; gives a version for each day that it has posts of, earliest first.

    Raises CrawlFailed where the crawl was blocked, was broken off, or failed; what it brought waits in its folder.
    """
    stopped = job.folder / "stopped.json"
    if not job.stats:
        how = json.loads(stopped.read_text(encoding="utf-8"))["finish_reason"] if stopped.exists() else "broken off"
        raise CrawlFailed(
            f"the crawl of {job.source} ended early: {how}",
            where=job.folder,
            remedy="run it again: it goes on where it was; if the site has blocked it, leave the site alone for a day",
        )
    brought = _brought(job.folder / "items.jsonl")
    with held(home / ".locks" / f"crawl-{job.source}"):
        standing = _days_of(store, job.source)
        fresh = brought.join(standing, on="post_id", how="left").with_columns(
            # A post stays on the day where it was first put, however a page may round its date later on.
            day=pl.coalesce("day", _day_of(pl.col("posted_at"), pl.col("fetched_at")))
        )
        versions = [
            _merged(store, job, day, rows.drop("day"))
            for (day,), rows in sorted(fresh.partition_by("day", as_dict=True).items())
        ]
        _remember(home / "crawl" / job.source / "seen.jsonl", job)
        (job.folder / _COLLECTED).touch()
    return versions


@dataclass(frozen=True)
class Coverage:
    """How often a field is filled in a day's posts, 0 … 1, and the median of the days of the week before it."""

    field: str
    share: float
    before: float | None

    @property
    def holds(self) -> bool:
        """Whether it is filled about as often as before."""
        return self.before is None or self.share >= self.before - _MAY_FALL

    def __str__(self) -> str:
        return f"{self.share:.0%}" + ("" if self.before is None else f" (the week before: {self.before:.0%})")


def coverage(store: Store, source: str, day: dt.date) -> list[Coverage]:
    """How often the fields of a day's posts are filled; none where the day has no posts.

    A page that has changed its layout under a selector loses a field on all posts at once.
    """
    shares = _filled(store, source, day)
    week = [_filled(store, source, day - dt.timedelta(days=n)) for n in range(1, 8)]
    found = []
    for name, share in shares.items():
        before = [of_day[name] for of_day in week if of_day]
        found.append(Coverage(name, share, statistics.median(before) if before else None))
    return found


def _filled(store: Store, source: str, day: dt.date) -> dict[str, float]:
    place = partition(source, day)
    if store.pointer(TABLE, place) is None:
        return {}
    answers = pl.col("answers").list.len() > 0
    rows = store.read(TABLE, partition=place).select(
        *(pl.col(name).is_not_null().mean() for name in ("author", "topic", "posted_at")),
        title=(pl.col("title") != "").mean(),
        description=(pl.col("description") != "").mean(),
        answers=answers.mean(),
    )
    return rows.collect().row(0, named=True)


def _merged(store: Store, job: Job, day: Any, rows: pl.DataFrame) -> Version:
    place = partition(job.source, day)
    before: pl.DataFrame = RawPosts.create_empty()
    if store.pointer(TABLE, place) is not None:
        before = store.read(TABLE, partition=place).collect()
    known = before.join(rows.select("post_id"), on="post_id", how="semi").select("post_id", first="fetched_at")
    # What stands may be the newer: a job that was broken off is gone on with after the next one. And with the first
    # `fetched_at` a row that says the same is the same row.
    newer = rows.join(known, on="post_id", how="left").filter(
        pl.col("first").is_null() | (pl.col("first") <= pl.col("fetched_at"))
    )
    first_seen = newer.with_columns(latest=pl.col("fetched_at"), fetched_at=pl.coalesce("first", "fetched_at"))
    same = first_seen.select(before.columns).join(before, on=before.columns, how="semi", nulls_equal=True)
    changed = first_seen.filter(~pl.col("post_id").is_in(same["post_id"].implode())).with_columns(fetched_at="latest")
    kept = before.filter(~pl.col("post_id").is_in(changed["post_id"].implode()))
    return store.write(
        TABLE,
        pl.concat([kept, RawPosts.cast(changed.select(before.columns))]),
        partition=place,
        code=code_version("crawlers.run"),
        settings={"source": job.source, "window": [str(job.window.first), str(job.window.last)]},
        note={name: job.stats.get(name) for name in ("items", "pages", "robots", "finish_reason")},
    )


def _brought(journal: Path) -> pl.DataFrame:
    """The posts of a journal, the last of each id."""
    # Lines of bytes: a text may hold what Python takes for the end of a line, and half of a character.
    lines = journal.read_bytes().split(b"\n") if journal.exists() else []
    said = (line.decode("utf-8", "replace") for line in lines if line)
    rows = {row["post_id"]: row for row in (json.loads(line, object_hook=_timed) for line in said)}
    return RawPosts.cast(pl.DataFrame(list(rows.values()), schema=RawPosts.polars_schema(), orient="row"))


def _timed(item: dict[str, Any]) -> dict[str, Any]:
    times = {name: item[name] for name in ("posted_at", "fetched_at") if isinstance(item.get(name), str)}
    return item | {name: dt.datetime.fromisoformat(said) for name, said in times.items()}


def _day_of(posted_at: pl.Expr, fetched_at: pl.Expr) -> pl.Expr:
    """The day of posting in Shanghai; of fetching, where the page shows no date."""
    return pl.coalesce(posted_at, fetched_at).dt.convert_time_zone(SHANGHAI.key).dt.date()


def _days_of(store: Store, source: str) -> pl.DataFrame:
    """`post_id`, `day`: where each post of the source stands."""
    found = [pl.DataFrame(schema={"post_id": pl.String, "day": pl.Date})]
    for place in store.partitions(TABLE):
        of, _, day = place.rpartition("@")
        if of == source and store.pointer(TABLE, place) is not None:
            ids = store.read(TABLE, partition=place).select("post_id").collect()
            found.append(ids.with_columns(day=pl.lit(dt.date.fromisoformat(day))))
    return pl.concat(found)


def _worth_knowing(store: Store, source: str, path: Path, window: Window) -> Iterator[dict[str, Any]]:
    """Of what was seen before, the posts that we hold, and those that stand outside of the window.

    A post of the window that we do not hold is to be fetched, whatever was remembered of it.
    """
    held_ids = set(_days_of(store, source)["post_id"])
    for line in _lines(path):
        posted_at = line.get("posted_at")
        day = dt.datetime.fromisoformat(posted_at).astimezone(SHANGHAI).date() if posted_at else None
        outside = day is not None and not window.first <= day <= window.last
        if outside or f"{source}:{line['source_id']}" in held_ids:
            yield line


def _remember(path: Path, job: Job) -> None:
    """What the lists of a job showed, unless a job that began later has looked at the same post."""
    began = (job.folder / "seen-before.jsonl").stat().st_mtime
    known = {line["source_id"]: line for line in _lines(path)}
    for line in _lines(job.folder / "seen.jsonl"):
        if known.get(line["source_id"], {}).get("began", 0.0) <= began:
            known[line["source_id"]] = {**line, "began": began}
    _write_lines(path, known.values())


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode())


def _uncollected(of_source: Path) -> list[Job]:
    """Jobs that came to their end, and whose posts nobody took over: who should have was killed in between."""
    left = []
    for stats in sorted(of_source.glob("*_*/[0-9]*/stats.json")):
        if not (stats.parent / _COLLECTED).exists():
            first, last = stats.parent.parent.name.split("_")
            left.append(Job(of_source.name, Window.parse(first, last, today()), stats.parent, [], {}))
    return left


def _job_folder(of_window: Path, asked: dict[str, Any]) -> Path:
    """The last job of the window, where it was broken off, asked for the same and is not emptied; else the next."""
    numbers = [int(folder.name) for folder in of_window.glob("[0-9]*")]
    last = max(numbers, default=0)
    folder = of_window / f"{last:04}"
    request = folder / "job.json"
    goes_on = (folder / "items.jsonl").exists() and not (folder / "stats.json").exists()
    if request.exists() and goes_on:
        before = json.loads(request.read_text(encoding="utf-8"))
        if asked.items() <= before.items():
            return folder
    folder = of_window / f"{last + 1:04}"
    folder.mkdir(parents=True)
    return folder
