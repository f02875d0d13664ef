"""A line of progress every few seconds, and what a crawl came to."""

import logging
from typing import Any, Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.asyncio import create_looping_call

logger = logging.getLogger(__name__)


class Progress:
    """Says pages, posts, errors and the present delay, as long as the crawl runs."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._loop = create_looping_call(self._say)
        crawler.signals.connect(self._opened, signal=signals.spider_opened)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)
        crawler.signals.connect(self._downloaded, signal=signals.response_downloaded)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes its extensions."""
        return cls(crawler)

    def _opened(self) -> None:
        self._loop.start(self._crawler.settings.getfloat("CRAWL_PROGRESS_SECONDS"), now=False)

    def _closed(self) -> None:
        if self._loop.running:
            self._loop.stop()
        self._say()

    def _downloaded(self, response: Response) -> None:
        # Scrapy's own figures count the pages of the cache too.
        self._crawler.stats.inc_value("crawl/pages")
        self._crawler.stats.inc_value("crawl/bytes", len(response.body))

    def _say(self) -> None:
        delay = max((slot.delay for slot in self._crawler.engine.downloader.slots.values()), default=0.0)
        logger.info("%s", line_of(self._crawler.stats.get_stats(), delay))


def line_of(stats: dict[str, Any], delay: float) -> str:
    """The line of progress: figures alone; `delay` in seconds."""
    errors = sum(value for name, value in stats.items() if name.startswith("crawl/errors/"))
    return (
        f"pages {stats.get('crawl/pages', 0)}, cached {stats.get('httpcache/hit', 0)}, "
        f"posts {stats.get('item_scraped_count', 0)}, errors {errors}, delay {delay:.1f} s"
    )
