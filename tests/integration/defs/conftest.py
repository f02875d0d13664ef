"""Dagster in the tests: instances that leave nothing behind."""

from dagster_fixtures import instance

__all__ = ["instance"]
