"""robots.txt beyond Scrapy: its Crawl-delay is applied, and it is kept as it was found."""

import hashlib
import logging
from datetime import UTC, datetime
from typing import Self

from scrapy import Request, signals
from scrapy.core.downloader import Slot
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.extensions.throttle import AutoThrottle
from scrapy.http import Response
from scrapy.robotstxt import RobotParser
from scrapy.utils.httpobj import urlparse_cached

from crawlers.extensions.blocked import is_robots
from crawlers.extensions.unwritten import stop_where_unwritten

logger = logging.getLogger(__name__)

_LONGEST = 300.0  # a Crawl-delay of an hour is a refusal in other words; we then ask this slowly
_BACKED_OFF = frozenset({429, 503})


class Robots:
    """Raises the delay of a host to its Crawl-delay, and keeps the robots.txt that every run found."""

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._crawler = crawler
        crawler.signals.connect(self._parsed, signal=signals.robots_parsed)
        crawler.signals.connect(self._received, signal=signals.response_received)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes its extensions."""
        return cls(crawler)

    def _received(self, response: Response, request: Request) -> None:
        if not is_robots(request):
            return
        job = self._crawler.spider.job  # type: ignore[union-attr]
        digest = hashlib.sha256(response.body).hexdigest()
        self._crawler.stats.set_value("robots/sha256", digest)
        self._crawler.stats.set_value("robots/status", response.status)
        logger.info("robots.txt of %s: status %s, sha256 %s", request.url, response.status, digest)
        if job is not None:
            with stop_where_unwritten(self._crawler, job.folder / "robots.txt"):
                job.keep_robots(request.url, response.body, response.status, datetime.now(UTC))

    def _parsed(self, robotparser: RobotParser, request: Request) -> None:
        delay = robotparser.crawl_delay(self._crawler.settings["USER_AGENT"])
        if delay is None or delay <= 0:
            return
        self._crawler.stats.set_value("robots/crawl_delay", delay)
        if not self._crawler.settings.getbool("CRAWL_DELAYS"):
            return
        delay = min(max(delay, self._crawler.settings.getfloat("DOWNLOAD_DELAY")), _LONGEST)
        raise_delay(self._crawler, urlparse_cached(request).hostname or "", delay)


def raise_delay(crawler: Crawler, host: str, delay: float) -> None:
    """Makes `delay` the least delay of `host`: now, when its slot is made again, and under the throttle."""
    downloader = crawler.engine.downloader
    downloader.per_slot_settings.setdefault(host, {})["delay"] = delay
    slot = downloader.slots.get(host)
    if slot is not None:
        slot.delay = max(slot.delay, delay)
    throttle = crawler.get_extension(AutoThrottle)
    if throttle is not None:
        throttle.mindelay = max(throttle.mindelay, delay)
        throttle.maxdelay = max(throttle.maxdelay, delay)
    crawler.stats.set_value("crawl/least_delay", delay)


class BackOff:
    """Waits longer after 429 and 503: twice as long, or as long as Retry-After says. The throttle comes down again."""

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("CRAWL_DELAYS"):
            raise NotConfigured
        self._crawler = crawler
        # Every answer that reaches us, also those that are retried.
        crawler.signals.connect(self._downloaded, signal=signals.response_downloaded)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes its extensions."""
        return cls(crawler)

    def _downloaded(self, response: Response, request: Request) -> None:
        if response.status in _BACKED_OFF:
            slot: Slot | None = self._crawler.engine.downloader.slots.get(request.meta.get("download_slot", ""))
            if slot is not None:
                slot.delay = longer(slot.delay, response.headers.get("Retry-After"))


def longer(delay: float, retry_after: bytes | None) -> float:
    """The delay in seconds after a refusal; `retry_after` as the header has it, a date in it not read."""
    asked = float(retry_after) if retry_after is not None and retry_after.isdigit() else 0.0
    return min(max(2 * delay, asked, 1.0), _LONGEST)
