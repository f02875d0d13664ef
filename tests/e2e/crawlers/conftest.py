"""One replica for all tests of a module."""

from crawl_fixtures import clean_replica, replica

__all__ = ["clean_replica", "replica"]
