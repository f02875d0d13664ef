"""A store on each kind of storage."""

from store_fixtures import local, store

__all__ = ["local", "store"]
