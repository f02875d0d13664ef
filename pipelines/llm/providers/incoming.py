"""What a host sends, before anything reads it: no redirect is followed, no more bytes are taken than a reply may have,
and the key that the host was sent is nowhere in it.

A hook of the HTTP client, so that all that is asked through it is held to this: calls, batches, files, error bodies.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from httpx2 import Response

# All ours. What stands around a reply, and the reply itself: a token is written in some 12 bytes where each of its
# characters is escaped, and a run of blanks in more.
AROUND_A_REPLY = 1 << 24
BYTES_A_TOKEN = 32
# The files of a batch's results are read line by line, and a line is a reply: this holds the disk and the time alone.
MOST_OF_A_FILE = 1 << 32

# What stands where the key stood. A shorter key is a placeholder ("none", "EMPTY") of a host that wants none, and a
# word of other texts.
KEY = b"[key]"
_SHORTEST_KEY = 8

_FILE = re.compile(r"/files/[^/]+/content\Z")
# Of a body as it travels: what is handed on is decoded.
_OF_THE_TRANSFER = {"content-encoding", "content-length", "transfer-encoding"}


class TooLarge(Exception):
    """Raised while a body is read that is longer than it may be."""

    def __init__(self, most: int) -> None:
        super().__init__(f"more than {most} bytes")
        self.most = most


class Redirected(Exception):
    """Raised for an answer that sends elsewhere: `to` is the host, never path or query, which may hold anything."""

    def __init__(self, status: int, to: str) -> None:
        super().__init__(f"{status} to {to}")
        self.status, self.to = status, to


def reply_bytes(tokens: int) -> int:
    """How many bytes a reply of so many tokens may have, with all that a host writes around it."""
    return AROUND_A_REPLY + BYTES_A_TOKEN * tokens


def held(most: int, secrets: Sequence[str]) -> "Callable[[Response], Awaitable[None]]":
    """The hook for a client's responses. Their bodies are decoded as they are read, and count as what they decode to.

    Args:
        most: How many bytes a body may have; a file of results MOST_OF_A_FILE.
        secrets: What is written as KEY wherever it stands.

    The hook raises Redirected, and reading the body TooLarge.
    """
    import httpx2

    words = [secret.encode() for secret in secrets if len(secret) >= _SHORTEST_KEY]

    class Body(httpx2.AsyncByteStream):
        def __init__(self, inner: "Response", most: int) -> None:
            self._inner, self._most = inner, most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            taken, kept = 0, b""
            async for some in self._inner.aiter_bytes():  # decoded, 1 MiB at a time at most
                taken += len(some)
                if taken > self._most:
                    raise TooLarge(self._most)
                whole, kept = _apart(_masked(kept + some, words), words)
                if whole:
                    yield whole
            if kept:
                yield kept

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def hook(response: "Response") -> None:
        fields = [(name, _masked(value, words)) for name, value in response.headers.raw]
        response.headers = httpx2.Headers(fields)
        if 300 <= response.status_code < 400 and "location" in response.headers:
            raise Redirected(response.status_code, _host(response.headers["location"]))
        inner = httpx2.Response(response.status_code, headers=fields, stream=response.stream, request=response.request)
        response.headers = httpx2.Headers(
            [(name, value) for name, value in fields if name.lower().decode("latin-1") not in _OF_THE_TRANSFER]
        )
        file = response.status_code == 200 and _FILE.search(response.request.url.path) is not None
        response.stream = Body(inner, MOST_OF_A_FILE if file else most)

    return hook


def _masked(text: bytes, words: Sequence[bytes]) -> bytes:
    for word in words:
        text = text.replace(word, KEY)
    return text


def _apart(text: bytes, words: Sequence[bytes]) -> tuple[bytes, bytes]:
    """What can be handed on, and the end of it in which a word may have begun."""
    ends = max((_begun(text, word) for word in words), default=0)
    return text[: len(text) - ends], text[len(text) - ends :]


def _begun(text: bytes, word: bytes) -> int:
    """How many bytes at the end of a text are the beginning of a word."""
    return next((n for n in range(min(len(word) - 1, len(text)), 0, -1) if text.endswith(word[:n])), 0)


def _host(location: Any) -> str:
    """Whose address it is; a path alone stays with the host that was asked."""
    try:
        parts = urlsplit(location)
        if not parts.hostname:
            return "another path of its own"
        return parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    except ValueError:
        return "an address that is none"
