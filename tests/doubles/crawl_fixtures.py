"""One replica for all tests of a module."""

from collections.abc import Iterator

import pytest
from crawl_runs import NOW
from troubled_replica import Replica


@pytest.fixture(scope="module")
def replica() -> Iterator[Replica]:
    with Replica(posts=180, now=NOW, days=10) as running:
        yield running


@pytest.fixture
def clean_replica(replica) -> Replica:
    """The replica with an empty log of requests, without troubles."""
    replica.reset()
    return replica
