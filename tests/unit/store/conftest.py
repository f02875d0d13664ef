"""An empty store."""

from store_fixtures import store

__all__ = ["store"]
