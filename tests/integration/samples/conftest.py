"""The replica, running, for tests that request its pages over HTTP."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from replica_http import Response, get
from troubled_replica import Replica


@pytest.fixture(scope="session")
def replica() -> Iterator[Replica]:
    """A replica of 640 posts whose clock stands still. Shared: read only, and troubles are switched off again."""
    with Replica(posts=640, now="2025-05-27T12:00:00+08:00") as running:
        yield running


@pytest.fixture(scope="session")
def posts(replica: Replica) -> list[dict[str, Any]]:
    """What the replica has, newest first."""
    return replica.posts()


@pytest.fixture
def fetch(replica: Replica) -> Iterator[Callable[[str], Response]]:
    """GET of a path of the shared replica, whose troubles are switched off afterwards."""
    yield lambda path: get(replica.url + path)
    replica.reset()
    replica.layout("2023")
