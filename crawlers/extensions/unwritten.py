"""When a file of the job can not be written, as on a full disk: the crawl stops, for what came would not be kept."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scrapy.crawler import Crawler

from crawlers.extensions.blocked import block


@contextmanager
def stop_where_unwritten(crawler: Crawler, path: Path) -> Iterator[None]:
    """Ends the crawl as `unwritten` where the block can not write, or read back, the file at `path`; raises nothing."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        block(crawler, getattr(error, "strerror", None) or str(error), str(path), "unwritten")
