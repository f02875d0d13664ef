"""The pages of a job, so that a crawl that was killed requests none of them twice.

SQLite in WAL mode: a page is stored whole or not at all, whenever the process dies. Bodies are compressed. Only good
answers are stored: an error, a refusal and a challenge are requested again.
"""

import re
import sqlite3
import zlib
from pathlib import Path

from scrapy import Request, Spider
from scrapy.extensions.httpcache import DummyPolicy
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes
from scrapy.settings import BaseSettings
from w3lib.http import headers_dict_to_raw, headers_raw_to_dict

from crawlers.errors import CrawlError
from crawlers.extensions.blocked import is_robots, stop_where_unwritten

_TABLE = """
CREATE TABLE IF NOT EXISTS pages (
    key BLOB PRIMARY KEY, url TEXT NOT NULL, at REAL NOT NULL, status INTEGER NOT NULL,
    headers BLOB NOT NULL, body BLOB NOT NULL
)
"""
_NUMBER = re.compile(rb"[0-9]+")  # an id of a post, on every engine of ours
_STORED = frozenset({200, 404, 410})


class PageStore:
    """Pages by the fingerprint of their request."""

    def __init__(self, path: Path, *, expire_before: float = 0.0) -> None:
        """Opens or makes the file, and deletes what is older than `expire_before` (seconds since 1970).

        Raises CrawlError for a file that is no such store.
        """
        self.path = path
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            # Enough against a killed process; after a power cut the last pages are requested again.
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA secure_delete=ON")
            self._db.execute(_TABLE)
            self._db.execute("DELETE FROM pages WHERE at < ?", (expire_before,))
        except sqlite3.DatabaseError as error:
            raise CrawlError(
                f"the pages can not be opened: {error}", where=path, hint="use a new folder for the job"
            ) from error

    def get(self, key: bytes) -> tuple[str, float, int, bytes, bytes] | None:
        """URL, time, status, headers, body; None where the page is missing or damaged."""
        row = self._db.execute("SELECT url, at, status, headers, body FROM pages WHERE key = ?", (key,)).fetchone()
        try:
            return (*row[:4], zlib.decompress(row[4])) if row else None
        except zlib.error:
            return None

    def put(self, key: bytes, url: str, at: float, status: int, headers: bytes, body: bytes) -> None:
        """Stores a page, in the place of an older one."""
        # Level 1: two thirds of what level 6 saves, at a third of its time.
        row = (key, url, at, status, headers, zlib.compress(body, 1))
        self._db.execute("INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        """Closes the file."""
        self._db.close()


class CachePolicy(DummyPolicy):
    """Good answers are stored, also that there is no such page; robots.txt is requested by every run."""

    def should_cache_request(self, request: Request) -> bool:
        """Everything but robots.txt."""
        return not is_robots(request)

    def should_cache_response(self, response: Response, request: Request) -> bool:  # noqa: ARG002 - Scrapy's
        """Good answers."""
        return response.status in _STORED


class CacheStorage:
    """`PageStore` behind the interface of Scrapy's HTTP cache middleware."""

    def __init__(self, _settings: BaseSettings) -> None:
        pass

    def open_spider(self, spider: Spider) -> None:
        """Takes the pages of the spider's job, which are open."""
        self._spider = spider
        self._options = spider.options  # type: ignore[attr-defined]
        self._store: PageStore = spider.pages  # type: ignore[attr-defined]
        self._fingerprint = spider.crawler.request_fingerprinter.fingerprint
        self._suppressed = {source_id.encode() for source_id in self._options.takedown}

    def close_spider(self, _spider: Spider) -> None:
        """Closes them."""
        self._store.close()

    def retrieve_response(self, _spider: Spider, request: Request) -> Response | None:
        """The page that was stored for `request`; its time goes to `request.meta`."""
        row = None
        with stop_where_unwritten(self._spider.crawler, self._store.path):
            row = self._store.get(self._fingerprint(request))
        if row is None:
            return None
        url, request.meta["cache_timestamp"], status, raw, body = row
        headers = Headers(headers_raw_to_dict(raw) or {})
        kind = responsetypes.from_args(headers=headers, url=url, body=body)
        return kind(url=url, status=status, headers=headers, body=body)

    def store_response(self, _spider: Spider, request: Request, response: Response) -> None:
        """Stores `response` for `request`, unless it names a post of the takedown list.

        Lists show how posts begin, also those that are never fetched. A killed crawl requests such a page again.
        """
        if not self._suppressed.isdisjoint(_NUMBER.findall(response.body)):
            return
        headers = headers_dict_to_raw(response.headers) or b""
        key, at = self._fingerprint(request), self._options.clock().timestamp()
        with stop_where_unwritten(self._spider.crawler, self._store.path):
            self._store.put(key, response.url, at, response.status, headers, response.body)
