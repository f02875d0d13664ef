"""The replica, running, for tests that ask it over HTTP."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from replica_http import Got, get

from samples.replica import Replica

NOW = datetime.fromisoformat("2025-05-27T12:00:00+08:00")


@pytest.fixture(scope="session")
def replica() -> Iterator[Replica]:
    """A replica of 640 posts whose clock stands still. Shared: read only, and switches are switched back."""
    with Replica(posts=640, now=NOW) as running:
        yield running


@pytest.fixture(scope="session")
def posts(replica: Replica) -> list[dict[str, Any]]:
    """What the replica has, newest first."""
    return replica.posts()


@pytest.fixture
def troubled(replica: Replica) -> Iterator[Replica]:
    """The shared replica, for one test that switches troubles on."""
    yield replica
    replica.reset()


@pytest.fixture
def ask(replica: Replica) -> Callable[[str], Got]:
    """GET of a path of the shared replica."""
    return lambda path: get(replica.url + path)
