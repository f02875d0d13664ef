"""The item pipeline: every finished post goes into the journal of its job, at once."""

from typing import Any, Self

from scrapy.crawler import Crawler


class Journal:
    """Appends the rows that the spider yields; a crawl without a job folder keeps none."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes its pipelines."""
        return cls(crawler)

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        """Gives the row on, for a feed that may want it too."""
        job = self._crawler.spider.job  # type: ignore[union-attr]
        if job is not None:
            job.append(item)
        return item
