"""The replica, running, for tests that request its pages over HTTP."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from parsel import Selector
from troubled_replica import Replica


class Response(NamedTuple):
    """An answer of the replica."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def page(self) -> Selector:
        return Selector(self.body.decode(self.headers.get_content_charset() or "utf-8"))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def get(url: str) -> Response:
    """The answer to a GET, whatever its status."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return Response(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Response(error.code, error.headers, error.read())


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
