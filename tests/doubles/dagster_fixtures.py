"""Dagster in the tests: ephemeral instances, homes of their own."""

import dagster as dg
import pytest


@pytest.fixture
def instance():
    """An instance that leaves nothing behind."""
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral
