"""robots.txt beyond Scrapy: one that did not come forbids everything, its Crawl-delay is applied, and it is kept."""

import hashlib
import logging
from datetime import UTC, datetime
from urllib.parse import urljoin

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
)
from scrapy.extensions.throttle import AutoThrottle
from scrapy.http import Response
from scrapy.robotstxt import RobotParser
from scrapy.utils.httpobj import urlparse_cached

from crawlers.extensions.blocked import LONGEST_DELAY, Blocked, block, first_url, is_robots, stop_where_unwritten

logger = logging.getLogger(__name__)

_NO_ANSWER = (
    *(CannotResolveHostError, DownloadConnectionRefusedError, DownloadFailedError, DownloadTimeoutError),
    OSError,
)


class StrictRobotsTxt(RobotsTxtMiddleware):
    """A robots.txt that did not come, or that can not be read, allows nothing. Scrapy takes it to allow everything."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        crawler.signals.connect(self._apply_delay, signal=signals.robots_parsed)

    async def robot_parser(self, request: Request) -> RobotParser:
        """The rules of the host of `request`; raises Blocked where there are none."""
        # A bomb and a loop of redirects fail on a response's way, where `process_exception` is not called.
        parser = await super().robot_parser(request)
        if parser is None:
            raise block(self.crawler, "robots", urljoin(request.url, "/robots.txt"))
        return parser

    def process_response(self, request: Request, response: Response) -> Response:
        """Keeps a robots.txt as it came; raises Blocked where the server failed, after its retries."""
        if not is_robots(request):
            return response
        if response.status >= 500:
            raise block(self.crawler, "robots", first_url(request))
        digest = hashlib.sha256(response.body).hexdigest()
        self.crawler.stats.set_value("robots/sha256", digest)
        self.crawler.stats.set_value("robots/status", response.status)
        logger.info("robots.txt of %s: status %s, sha256 %s", response.url, response.status, digest)
        job = self.crawler.spider.job  # type: ignore[union-attr]
        if job is not None:
            with stop_where_unwritten(self.crawler, job.folder / "robots.txt"):
                job.keep_robots(response.url, response.body, response.status, digest, datetime.now(UTC))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Ends the crawl where robots.txt could not be fetched."""
        if is_robots(request) and not isinstance(exception, Blocked):
            reason = "unreachable" if isinstance(exception, _NO_ANSWER) else "blocked"
            raise block(self.crawler, "robots", first_url(request), reason)

    def _apply_delay(self, robotparser: RobotParser, request: Request) -> None:
        settings, stats = self.crawler.settings, self.crawler.stats
        delay = robotparser.crawl_delay(settings["USER_AGENT"])
        if delay is None or delay <= 0:
            return
        stats.set_value("robots/crawl_delay", delay)
        if settings.getbool("CRAWL_DELAYS"):
            least = min(max(delay, settings.getfloat("DOWNLOAD_DELAY")), LONGEST_DELAY)
            raise_delay(self.crawler, urlparse_cached(request).hostname or "", least)


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
