"""Before a crawl: what it learns of the posts we hold, which job it continues, and which raw pages are too old."""

import datetime as dt
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from crawlers.dates import Window, day_of
from crawlers.job import expire
from crawlers.options import is_loopback, read_ids
from crawlers.sites import Site, sites
from pipelines.core.home import Home
from pipelines.crawl.collecting import collect, days_of, taken_down
from pipelines.crawl.jobs import COLLECTED, Job, begun, job_folder, read_lines, uncollected, write_lines
from pipelines.errors import RequestError, UnknownName
from pipelines.settings import AUTHOR_KEY, Crawl, author_key, author_key_file
from pipelines.store.store import Store


def prepare(
    home: Path,
    store: Store,
    source: str,
    window: Window,
    settings: Crawl,
    *,
    base_url: str | None = None,
    max_items: int | None = None,
    ids: str | None = None,
    delays: bool = True,
) -> Job:
    """The job of a window: the one that was broken off, where its pages and posts are still there, else a new one.

    Before that, the posts of a finished job that nobody collected are written, and raw pages that are too old deleted.
    Of the posts in `store` nothing unchanged is fetched; `base_url` is another address of the site; `ids` (A-B) are
    walked over in the place of lists; without `delays` only this machine is crawled.

    Raises UnknownName for an unknown source; RequestError without a key for the authors' pseudonyms, and for an
    address that is not the source's; CrawlError for a damaged takedown list, and for ids that are none.
    """
    if source not in sites():
        raise UnknownName("source", source, sites())
    site = sites()[source]
    if ids is not None:
        read_ids(site, ids)
    if base_url is not None:
        _refuse_another_machine(site, base_url)
    key = _key(home)
    taken_down(home, source)
    source_folder = Home(home).crawl / source
    taken_over = [version for job in uncollected(source_folder) for version in collect(home, store, job)]
    expire_pages(home, settings)
    request = {"base_url": (base_url or site.base_url).rstrip("/"), "max_items": max_items}
    name = f"{window.first}_{window.last}" + (f"_{ids}" if ids else "")
    folder = job_folder(source_folder / name, request)
    seen = folder / "seen-before.jsonl"
    for ended in ("stopped.json", "refused.json"):  # of its last run
        (folder / ended).unlink(missing_ok=True)
    if not (seen.exists() and begun(folder)):
        write_lines(seen, _relevant(store, source, source_folder / "seen.jsonl", window))
    command = [sys.executable, "-m", "crawlers.run", source]
    options = {
        "--from": window.first,
        "--until": window.last,
        "--ids": ids,
        "--job": folder,
        "--seen": seen,
        "--takedown": Home(home).takedown,
        "--base-url": base_url,
        "--max-items": max_items,
        "--missing-share": settings.missing_share,
        "--keep-pages-days": settings.keep_pages_days,
        "--contact": settings.contact,
        "--delays": None if delays else "off",
    }
    for name, value in options.items():
        if value is not None:
            command += [name, str(value)]
    return Job(source, window, folder, command, {**os.environ, AUTHOR_KEY: key}, tuple(taken_over))


def expire_pages(home: Path, settings: Crawl) -> None:
    """Deletes the raw pages and journals of every source that nobody has touched for `keep_pages_days`.

    A job at work keeps its own, and a finished one has a day at least to be collected.
    """
    now, age = dt.datetime.now(dt.UTC), dt.timedelta(days=settings.keep_pages_days)
    for job in (path.parent for path in sorted(Home(home).crawl.glob("*/*/*/job.json"))):
        waits = (job / "stats.json").exists() and not (job / COLLECTED).exists()
        expire(job, now - (max(age, dt.timedelta(days=1)) if waits else age))


def _refuse_another_machine(site: Site, base_url: str) -> None:
    """A replica's invented posts are no site's, and a site's posts are not invented."""
    try:
        host = urlsplit(base_url).hostname
    except ValueError:
        host = None
    if host is None:
        return  # no address at all: the crawl refuses it
    replica = is_loopback(host)
    if replica != is_loopback(site.host):
        raise RequestError(
            "an address on this machine is a replica's, and its posts are invented: they do not belong to a real site"
            if replica
            else f"the source {site.name} is a replica on this machine, and its posts are declared invented",
            where=base_url,
            hint="crawl a replica as the source `replica`, and a site under its own name",
        )


def _key(home: Path) -> str:
    """The key of the authors' pseudonyms, as the environment of the crawl takes it."""
    key = author_key(home)
    try:
        text = key.decode() if key else ""
    except UnicodeDecodeError:
        text = ""
    if not text or "\0" in text:
        raise RequestError(
            "a crawl makes pseudonyms of authors, and there is no key for them"
            if not key
            else "the key of the authors' pseudonyms is not text",
            where=author_key_file(home),
            hint="set GONGQING_AUTHOR_KEY to at least 16 characters that nobody can guess, and keep them",
        )
    return text


def _relevant(store: Store, source: str, path: Path, window: Window) -> Iterator[dict[str, Any]]:
    """The lines of posts that we hold, lie outside the window, or cannot be read: any other is to be fetched."""
    held_ids = set(days_of(store, source)["post_id"])
    for line in read_lines(path, "source_id"):
        posted_at = line.get("posted_at")
        outside = posted_at is not None and day_of(dt.datetime.fromisoformat(posted_at)) not in window
        if line.get("unread") or outside or f"{source}:{line['source_id']}" in held_ids:
            yield line
