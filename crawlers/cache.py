"""The pages of a job, so that a crawl that was killed asks for none of them twice.

SQLite in WAL mode: a page is there whole or not at all, whenever the process dies. Bodies are compressed. Only good
answers are kept: an error, a refusal and a challenge are asked for again.
"""

import re
import sqlite3
import zlib
from pathlib import Path

from scrapy import Request, Spider
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes
from scrapy.settings import BaseSettings
from w3lib.http import headers_dict_to_raw, headers_raw_to_dict

from crawlers.errors import CrawlError
from crawlers.extensions.unwritten import stop_where_unwritten

_TABLE = """
CREATE TABLE IF NOT EXISTS pages (
    key BLOB PRIMARY KEY, url TEXT NOT NULL, at REAL NOT NULL, status INTEGER NOT NULL,
    headers BLOB NOT NULL, body BLOB NOT NULL
)
"""
_NUMBER = re.compile(rb"[0-9]+")  # an id of a post, on every engine of ours
_KEPT = frozenset({200, 404, 410})


class PageStore:
    """Pages by the fingerprint of their request."""

    def __init__(self, path: Path, *, expire_before: float = 0.0) -> None:
        """Opens or makes the file, and deletes what is older than `expire_before` (seconds since 1970).

        Raises:
            CrawlError: for a file that is no such store.
        """
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            # Enough against a killed process; after a power cut the last pages are asked for again.
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA secure_delete=ON")
            self._db.execute(_TABLE)
            self._db.execute("DELETE FROM pages WHERE at < ?", (expire_before,))
        except sqlite3.DatabaseError as error:
            raise CrawlError(
                f"the pages can not be opened: {error}", where=path, hint="begin anew elsewhere"
            ) from error

    def get(self, key: bytes) -> tuple[str, float, int, bytes, bytes] | None:
        """URL, time, status, headers, body; None where the page is not there, or can not be read any more."""
        row = self._db.execute("SELECT url, at, status, headers, body FROM pages WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        url, at, status, headers, body = row
        try:
            return url, at, status, headers, zlib.decompress(body)
        except zlib.error:
            return None

    def put(self, key: bytes, url: str, at: float, status: int, headers: bytes, body: bytes) -> None:
        """Keeps a page, in the place of an older one."""
        # Level 1: two thirds of what level 6 saves, at a third of its time.
        row = (key, url, at, status, headers, zlib.compress(body, 1))
        self._db.execute("INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?, ?)", row)

    def __len__(self) -> int:
        count: int = self._db.execute("SELECT count(*) FROM pages").fetchone()[0]
        return count

    def close(self) -> None:
        """Closes the file."""
        self._db.close()


class CachePolicy:
    """Scrapy's policy: what is kept, and what is asked for again."""

    def __init__(self, settings: BaseSettings) -> None:
        pass

    def should_cache_request(self, request: Request) -> bool:
        """Everything but robots.txt, which is asked for by every run."""
        return not request.meta.get("dont_obey_robotstxt", False)

    def should_cache_response(self, response: Response, _request: Request) -> bool:
        """Good answers, and "there is no such page"."""
        return response.status in _KEPT

    def is_cached_response_fresh(self, _cachedresponse: Response, request: Request) -> bool:
        """Always, unless the page could not be read and is asked for once more."""
        return not request.meta.get("again", False)

    def is_cached_response_valid(self, _cached: Response, _response: Response, _request: Request) -> bool:
        """Never: what was asked for again is what counts."""
        return False


class CacheStorage:
    """Scrapy's storage: `PageStore` behind the interface of its HTTP cache middleware."""

    def __init__(self, _settings: BaseSettings) -> None:
        pass

    def open_spider(self, spider: Spider) -> None:
        """Takes the pages of the spider's job, which stand open."""
        # By the spider's clock, which stands still in tests.
        self._clock = spider.options.clock  # type: ignore[attr-defined]
        self._fingerprinter = spider.crawler.request_fingerprinter
        self._store: PageStore = spider.pages  # type: ignore[attr-defined]
        self._path: Path = spider.job.pages  # type: ignore[attr-defined]
        self._crawler = spider.crawler
        self._taken_down = {source_id.encode() for source_id in spider.options.takedown}  # type: ignore[attr-defined]

    def close_spider(self, _spider: Spider) -> None:
        """Closes them."""
        self._store.close()

    def retrieve_response(self, _spider: Spider, request: Request) -> Response | None:
        """The page that was kept for `request`; its time goes to `request.meta`."""
        found = None
        with stop_where_unwritten(self._crawler, self._path):
            found = self._store.get(self._fingerprinter.fingerprint(request))
        if found is None:
            return None
        url, at, status, raw, body = found
        request.meta["cache_timestamp"] = at
        headers = Headers(headers_raw_to_dict(raw) or {})
        kind = responsetypes.from_args(headers=headers, url=url, body=body)
        return kind(url=url, status=status, headers=headers, body=body)

    def store_response(self, _spider: Spider, request: Request, response: Response) -> None:
        """Keeps `response` for `request`; no page that names a post which is to go.

        Lists show how posts begin, those too that are never fetched. A killed crawl asks for such a page again.
        """
        if not self._taken_down.isdisjoint(_NUMBER.findall(response.body)):
            return
        headers = headers_dict_to_raw(response.headers) or b""
        key = self._fingerprinter.fingerprint(request)
        with stop_where_unwritten(self._crawler, self._path):
            self._store.put(key, response.url, self._clock().timestamp(), response.status, headers, response.body)
