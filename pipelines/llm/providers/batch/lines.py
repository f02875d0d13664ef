"""The files of a batch: a line a call, and a line a result."""

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pipelines.errors import RequestError
from pipelines.llm.ledger.records import Call

MOST_REQUESTS = 50_000  # in one file: the API's
MOST_BYTES = 200_000_000
ENDPOINT: Final = "/v1/chat/completions"

log = logging.getLogger(__name__)


def parts(calls: Iterable[Call]) -> list[list[Call]]:
    """The calls in files of at most MOST_REQUESTS and MOST_BYTES. Raises RequestError for one that no file can hold."""
    cut: list[list[Call]] = []
    room = 0
    for call in calls:
        size = len(line(call.key, call.payload))
        if size > MOST_BYTES:
            raise RequestError(f"a request of {size} bytes is too large for a batch", remedy="ask without --batch")
        if not cut or size > room or len(cut[-1]) == MOST_REQUESTS:
            cut.append([])
            room = MOST_BYTES
        cut[-1].append(call)
        room -= size
    return cut


def line(key: str, payload: bytes) -> bytes:
    """The line of a call in a batch's file."""
    return b'{"custom_id":%b,"method":"POST","url":"%b","body":%b}\n' % (
        json.dumps(key).encode(),
        ENDPOINT.encode(),
        payload,
    )


def results(content: bytes) -> dict[str, Mapping[str, Any]]:
    """Lines of a file of results by their key; of those that cannot be read the log says how many there are.

    Split at line feeds alone: a text may hold other line breaks.
    """
    found: dict[str, Mapping[str, Any]] = {}
    unread = 0
    for one in content.split(b"\n"):
        if not one.strip():
            continue
        try:
            result = json.loads(one)
            found[result["custom_id"]] = result
        except (ValueError, KeyError, TypeError, RecursionError):
            unread += 1
    if unread:
        log.warning("%d lines of a batch's results cannot be read", unread)
    return found
