"""A release with an invented and a crawled source; instances of Dagster."""

from release_fixtures import mixed

__all__ = ["mixed"]
