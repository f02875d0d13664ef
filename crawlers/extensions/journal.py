"""The item pipeline: every finished post goes into the journal of its job, at once.

With it stands what the list showed of it (its fingerprint), so that a job that goes on later, past newer lists, takes
no answer for known that came after the post was fetched. A feed has the posts alone.
"""

from typing import Any, Self

from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem

from crawlers.extensions.unwritten import stop_where_unwritten


class Journal:
    """Appends the rows that the spider yields; a crawl without a job folder keeps none."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes its pipelines."""
        return cls(crawler)

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        """Gives the row on, for a feed that may want it too; drops one that can not be written."""
        spider: Any = self._crawler.spider
        if spider.job is None:
            return item
        with stop_where_unwritten(self._crawler, spider.job.items):
            spider.job.append(item, spider.fingerprints.get(item["source_id"]))
            return item
        raise DropItem("unwritten")
