"""Logs that hold ids and addresses, never a text: Scrapy's own would print every post that it scraped."""

import logging
from typing import Any

from scrapy import Spider
from scrapy.http import Response
from scrapy.logformatter import LogFormatter, LogFormatterResult
from twisted.python.failure import Failure


def _named(message: str, level: int, item: Any) -> LogFormatterResult:
    return {"level": level, "msg": message, "args": {"post": item.get("post_id") if isinstance(item, dict) else "?"}}


class QuietLogs(LogFormatter):
    """Names a post by its id where Scrapy would print it."""

    def scraped(self, item: Any, _response: Response | Failure | None, _spider: Spider) -> LogFormatterResult:
        """A post was read."""
        return _named("Scraped %(post)s", logging.DEBUG, item)

    def dropped(
        self, item: Any, _exception: BaseException, _response: Response | Failure | None, _spider: Spider
    ) -> LogFormatterResult:
        """A post was dropped by a pipeline."""
        return _named("Dropped %(post)s", logging.WARNING, item)

    def item_error(
        self, item: Any, _exception: BaseException, _response: Response | Failure | None, _spider: Spider
    ) -> LogFormatterResult:
        """A pipeline failed on a post."""
        return _named("Error processing %(post)s", logging.ERROR, item)
