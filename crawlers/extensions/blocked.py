"""When a site does not want us: the crawl stops, asks nothing more, and fails loudly. No challenge is ever solved.

===============  =========================================================================================
sign             seen as
===============  =========================================================================================
``challenge``    a page that computes ``arg1`` for ``acw_sc__v2``/``v3``, ``u_atoken`` in an address, a header of
                 Cloudflare's, the name of a check in the title
``captcha``      a redirect to a host or a path that asks for proof of being human
``login``        a redirect to a login page
``overload``     redirects to 503-error.html, after a few retries
``refusals``     403, 429 or 503 several times in a row
``emptiness``    a page of a list without posts where there must be some, or several posts in a row that could not be
                 read
``robots``       a robots.txt that the server could not give, or that can not be read: then nothing is allowed
                 (RFC 9309 §2.3.1.4)
===============  =========================================================================================

Where not even a connection came about, nobody has refused us: the crawl ends as ``unreachable``, not as ``blocked``.
"""

import logging
import re
from typing import Self
from urllib.parse import parse_qsl, urljoin, urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
)
from scrapy.http import Response
from scrapy.robotstxt import RobotParser
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
_NO_ANSWER = (
    *(CannotResolveHostError, DownloadConnectionRefusedError, DownloadFailedError, DownloadTimeoutError),
    OSError,
)
_REFUSALS = frozenset({403, 429, 503})


class Blocked(IgnoreRequest):
    """A page that says that we are not wanted; `sign` says how."""

    def __init__(self, sign: str) -> None:
        self.sign = sign
        super().__init__(f"blocked: {sign}")


def block(crawler: Crawler, sign: str, url: str, reason: str = "blocked") -> Blocked:
    """Ends the crawl with `reason`, once; gives the exception for whoever waits for the page."""
    if crawler.stats.get_value("blocked/sign") is None:
        crawler.stats.set_value("blocked/sign", sign)
        crawler.stats.set_value("blocked/url", url)
        crawler.stats.set_value("blocked/reason", reason)
        logger.error("%s (%s) at %s: the crawl stops", reason, sign, url)
        _schedule_coro(crawler.engine.close_spider_async(reason=reason))
    return Blocked(sign)


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


class StopWhereBlocked:
    """Reads every answer before it is cached, and lets nothing out once the crawl is blocked."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._limit: int = crawler.settings.getint("CRAWL_REFUSALS_MAX")
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
            raise block(self._crawler, sign, asked_url(request))
        if response.status == 403 and request.meta.get("unread_before"):
            return response  # of this post it is known; of the crawl it says nothing
        self._refusals = self._refusals + 1 if response.status in _REFUSALS else 0
        if self._refusals >= self._limit:
            raise block(self._crawler, "refusals", asked_url(request))
        return response


class NoRobotsNoCrawl(RobotsTxtMiddleware):
    """A robots.txt that did not come, or that can not be read, allows nothing. Scrapy takes it to allow everything."""

    async def robot_parser(self, request: Request) -> RobotParser:
        """What the robots.txt of the host of `request` says; raises Blocked where there is nothing that it said."""
        # A bomb and a loop of redirects are found out on a response's way, where `process_exception` hears nothing.
        parser = await super().robot_parser(request)
        if parser is None:
            raise block(self.crawler, "robots", urljoin(request.url, "/robots.txt"))
        return parser

    def process_response(self, request: Request, response: Response) -> Response:
        """Gives the answer on, unless it is a failing robots.txt after its retries."""
        if is_robots(request) and response.status >= 500:
            raise block(self.crawler, "robots", asked_url(request))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Ends the crawl where robots.txt could not be fetched."""
        if is_robots(request) and not isinstance(exception, Blocked):
            reason = "unreachable" if isinstance(exception, _NO_ANSWER) else "blocked"
            raise block(self.crawler, "robots", asked_url(request), reason)


def asked_url(request: Request) -> str:
    """The address that we asked for: the one that a redirect led to may have the words of a title in it."""
    url: str = request.meta.get("redirect_urls", [request.url])[0]
    return url


def is_robots(request: Request) -> bool:
    """Whether Scrapy asks for a robots.txt by `request`."""
    return bool(request.meta.get("dont_obey_robotstxt"))
