"""The files of a batch: a line a call, and a line a result."""

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pipelines.errors import RequestError
from pipelines.llm.ledger.records import Call

MOST_REQUESTS = 50_000  # in one file: the API's
MOST_BYTES = 200_000_000
# Of a file of results, in memory at once: ours.
_LINES_AT_ONCE = 500
_BYTES_AT_ONCE = 1 << 24
ENDPOINT: Final = "/v1/chat/completions"

log = logging.getLogger(__name__)


def parts(calls: Iterable[Call]) -> list[list[Call]]:
    """The calls in files of at most MOST_REQUESTS and MOST_BYTES. Raises RequestError for one that no file can hold."""
    cut: list[list[Call]] = []
    room = 0
    for call in calls:
        size = len(line(call.key, call.payload))
        if size > MOST_BYTES:
            raise RequestError(f"a request of {size} bytes is too large for a batch", hint="ask without --batch")
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


class Lines:
    """The lines of a file that comes in pieces: a line that is longer than `most` bytes is left out, and not held."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._begun = bytearray()  # of a line without its end
        self._skipping = False
        self._ready: list[bytes] = []
        self._size = 0
        self.left_out = 0

    def add(self, some: bytes) -> None:
        """One more piece."""
        *ended, begun = some.split(b"\n")
        for end in ended:
            self._extend(end)
            if not self._skipping and self._begun.strip():
                self._ready.append(bytes(self._begun))
                self._size += len(self._begun)
            self._begun.clear()
            self._skipping = False
        self._extend(begun)

    @property
    def full(self) -> bool:
        """Whether there is enough to be taken."""
        return len(self._ready) >= _LINES_AT_ONCE or self._size >= _BYTES_AT_ONCE

    def taken(self) -> list[bytes]:
        """The lines that are whole, once."""
        ready, self._ready, self._size = self._ready, [], 0
        return ready

    def _extend(self, some: bytes) -> None:
        if self._skipping:
            return
        if len(self._begun) + len(some) > self._most:
            self._begun.clear()
            self._skipping = True
            self.left_out += 1
        else:
            self._begun += some


def results(lines: Iterable[bytes]) -> dict[str, Mapping[str, Any]]:
    """Lines of a file of results by their key; of those that cannot be read the log says how many there are."""
    found: dict[str, Mapping[str, Any]] = {}
    unread = 0
    for one in lines:
        try:
            result = json.loads(one)
            found[result["custom_id"]] = result
        except (ValueError, KeyError, TypeError, RecursionError):
            unread += 1
    if unread:
        log.warning("%d lines of a batch's results cannot be read", unread)
    return found
