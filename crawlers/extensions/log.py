"""The log of a crawl: figures, ids and addresses, never a text."""

import logging
from typing import Any, Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.extensions.logstats import LogStats
from scrapy.http import Response
from scrapy.logformatter import LogFormatter, LogFormatterResult

logger = logging.getLogger(__name__)


class Progress(LogStats):
    """Logs pages, posts, errors and the present delay instead of Scrapy's figures, which count cached pages too."""

    _crawler: Crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes its extensions."""
        progress = super().from_crawler(crawler)
        progress._crawler = crawler
        crawler.signals.connect(progress._downloaded, signal=signals.response_downloaded)
        return progress

    def log(self, spider: Spider) -> None:  # noqa: ARG002 - Scrapy's
        """Writes the line."""
        stats = self.stats.get_stats()
        figures = [stats.get(name, 0) for name in ("crawl/pages", "httpcache/hit", "item_scraped_count")]
        errors = sum(value for name, value in stats.items() if name.startswith("crawl/errors/"))
        line = "pages %s, cached %s, posts %s, errors %s, delay %.1f s"
        logger.info(line, *figures, errors, delay_of(self._crawler))

    def spider_closed(self, spider: Spider, reason: str) -> None:
        """Writes the last line."""
        super().spider_closed(spider, reason)
        self.log(spider)

    def _downloaded(self, response: Response) -> None:
        self.stats.inc_value("crawl/pages")
        self.stats.inc_value("crawl/bytes", len(response.body))


def delay_of(crawler: Crawler) -> float:
    """The delay between two requests at present, in seconds."""
    return max((slot.delay for slot in crawler.engine.downloader.slots.values()), default=0.0)


class QuietLogs(LogFormatter):
    """Names a post by its id where Scrapy would print all of it."""

    def scraped(self, item: Any, *_: object) -> LogFormatterResult:
        """The line of a post."""
        return {"level": logging.DEBUG, "msg": "Scraped %(post)s", "args": {"post": item["post_id"]}}

    def item_error(self, item: Any, *_: object) -> LogFormatterResult:
        """The line of a post on which a pipeline, of somebody's own, failed."""
        return {"level": logging.ERROR, "msg": "Error processing %(post)s", "args": {"post": item["post_id"]}}

    def dropped(self, item: Any, *_: object) -> LogFormatterResult:
        """The line of a post that a pipeline, of somebody's own, dropped."""
        return {"level": logging.WARNING, "msg": "Dropped %(post)s", "args": {"post": item["post_id"]}}
