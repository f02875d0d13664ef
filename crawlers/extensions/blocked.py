"""When a site does not want us: the crawl stops, requests nothing more, and fails. No challenge is ever solved.

Its signs are `challenge`, `captcha`, `login`, `overload` (after a few retries), `refusals` (403, 429 or 503 in a row),
`emptiness` (a list without posts where there must be some, posts in a row that could not be read), and `robots`: one
that did not come, or can not be read, allows nothing (RFC 9309 §2.3.1.4).

Where not even a connection came about, nobody has refused us: the crawl ends as ``unreachable``, not as ``blocked``.
"""

import logging
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import _schedule_coro

logger = logging.getLogger(__name__)

# In a script alone, and in none of JSON, where a page keeps what people wrote: a person may write of such cookies, and
# must not stop the crawl by it.
_SCRIPT = re.compile(
    rb"<script(?![^>]*\btype\s*=[\s'\"]*[^\s'\">]*json)[^>]*>(?:(?!</script).){0,2000}?(?:\barg1\s*=\s*['\"][0-9A-Fa-f]{6,}|acw_sc__v[23])",
    re.S,
)
_TITLE = re.compile(r"<title>\s*(?:百度安全验证|安全验证|访问验证|滑动验证|滑动验证页面|人机验证)\s*</title>".encode())
_BEGINNING = 16_384
_TOKENS = frozenset({"u_atoken", "u_asession", "u_asig", "u_aref"})
# Hosts, and whole parts of a path: the words of a title may be part of the address of a post.
_CAPTCHA = re.compile(r"^(?:sec|wappass)\.|^[^/]*captcha|/(?:captcha|punish|sec|misc/sorry)(?:\.\w+)?(?:/|$)", re.I)
_LOGIN = re.compile(r"^(?:accounts|login|passport)\.|/(?:login|signin|passport)(?:\.\w+)?(?:/|$)", re.I)
_POST = re.compile(r"/[0-9]+(?:\.\w+)?(?:/|$)")  # a wall has no number, a post of the title "login" has
_REFUSALS = frozenset({403, 429, 503})
_BACK_OFF = frozenset({429, 503})
LONGEST_DELAY = 300.0  # seconds; a Crawl-delay of an hour is a refusal in other words, and we then crawl this slowly


class Blocked(IgnoreRequest):
    """Raised for a page that says that we are not wanted; `sign` says how."""

    def __init__(self, sign: str) -> None:
        self.sign = sign
        super().__init__(f"blocked: {sign}")


def block(crawler: Crawler, sign: str, url: str, reason: str = "blocked") -> Blocked:
    """Ends the crawl with `reason`, once; gives the exception for the caller to raise."""
    if crawler.stats.get_value("blocked/sign") is None:
        crawler.stats.set_value("blocked/sign", sign)
        logger.error("%s (%s) at %s: the crawl stops", reason, sign, url)
        _schedule_coro(crawler.engine.close_spider_async(reason=reason))
    return Blocked(sign)


@contextmanager
def stop_where_unwritten(crawler: Crawler, path: Path) -> Iterator[None]:
    """Ends the crawl as `unwritten` where the block can not write or read the file at `path`, as on a full disk.

    Raises nothing: what comes after the block must stand the file's absence.
    """
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        block(crawler, getattr(error, "strerror", None) or str(error), str(path), "unwritten")


def challenge_of_url(url: str) -> str | None:
    """The sign that an address, the target of a redirect, gives; None for one like any other."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    if _TOKENS & query.keys():
        return "challenge"
    place = f"{parts.hostname or ''}{'' if _POST.search(parts.path) else parts.path}"
    if _CAPTCHA.search(place):
        return "captcha"
    return "login" if _LOGIN.search(place) or query.get("mod") == "logging" else None


def challenge_of_page(response: Response) -> str | None:
    """The sign that a page gives; None for one like any other."""
    if response.headers.get("cf-mitigated") == b"challenge":
        return "challenge"
    start = response.body[:_BEGINNING]
    if _TITLE.search(start) or ((b"arg1" in start or b"acw_sc__v" in start) and _SCRIPT.search(start)):
        return "challenge"
    return None


def longer_delay(delay: float, retry_after: bytes | None) -> float:
    """The delay in seconds after a refusal: twice as long, or as long as `retry_after` says (a date in it not read)."""
    wanted = float(retry_after) if retry_after is not None and retry_after.isdigit() else 0.0
    return min(max(2 * delay, wanted, 1.0), LONGEST_DELAY)


class StopWhereBlocked:
    """Reads every answer before it is cached, slows down after a refusal, and sends nothing once the crawl is blocked.

    Scrapy's throttle shortens the delay again.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._limit = crawler.settings.getint("CRAWL_REFUSALS_MAX")
        self._refusals = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes its middlewares."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:  # noqa: ARG002 - Scrapy gives it by name
        """Raises Blocked once the crawl is."""
        sign = self._crawler.stats.get_value("blocked/sign")
        if sign is not None:
            raise Blocked(sign)

    def process_response(self, request: Request, response: Response) -> Response:
        """Gives an ordinary answer on; raises Blocked for a challenge, and for one refusal too many."""
        if "cached" in response.flags:
            return response
        sign = challenge_of_page(response)
        if sign is not None:
            raise block(self._crawler, sign, first_url(request))
        if response.status in _BACK_OFF and self._crawler.settings.getbool("CRAWL_DELAYS"):
            slot = self._crawler.engine.downloader.slots.get(request.meta.get("download_slot", ""))
            if slot is not None:
                slot.delay = longer_delay(slot.delay, response.headers.get("Retry-After"))
        if response.status == 403 and request.meta.get("unread_before"):
            return response  # known of this post; it says nothing of the crawl
        self._refusals = self._refusals + 1 if response.status in _REFUSALS else 0
        if self._refusals >= self._limit:
            raise block(self._crawler, "refusals", first_url(request))
        return response


def first_url(call: Request | Response) -> str:
    """The address that was requested first: the one that a redirect led to may have the words of a title in it."""
    url: str = call.meta.get("redirect_urls", [call.url])[0]
    return url


def is_robots(request: Request) -> bool:
    """Whether Scrapy requests a robots.txt by `request`."""
    return bool(request.meta.get("dont_obey_robotstxt"))
