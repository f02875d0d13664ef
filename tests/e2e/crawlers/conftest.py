"""One replica for all tests of a module."""

from crawl_fixtures import asked, replica

__all__ = ["asked", "replica"]
