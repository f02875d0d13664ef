"""A release of a home with an invented and a crawled source, made once."""

from release_fixtures import mixed

__all__ = ["mixed"]
