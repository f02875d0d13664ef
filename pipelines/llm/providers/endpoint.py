"""One model at its host: its HTTP client, its limits, and what each answer means that is no completion.

No redirect is followed, no more bytes are read than a reply may have, and the key that was sent is in nothing that is
handed on. A hook of the HTTP client sees to it, so that it holds for calls, batches, files and error bodies.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from pipelines.errors import HostRefused, UnreadableFile
from pipelines.llm.completions import ABOUT_ONE, code_of, verdict_of
from pipelines.llm.limits import Limits
from pipelines.llm.payload import LONGEST, Request, sendable
from pipelines.llm.profiles import Profile, host, key
from pipelines.llm.providers.retry import LONGEST_WAIT, RequestFailed, is_retried, retry_after
from pipelines.settings import Llm

if TYPE_CHECKING:
    from httpx2 import Response

_CONNECT_SECONDS = 10.0  # to connect takes no thinking: ours
# A host that refuses this many questions in a row does not mean the texts; one that gives no answer to as many is down.
# Fewer, and a run of odd posts ends a refresh: ours.
MOST_IN_A_ROW = 8
# Connections of one client, of which an endpoint has as many as it needs: for every request a pool looks at the socket
# of each idle connection, and with 64 in one pool that takes longer than all the rest of a call.
_CONNECTIONS = 8
# What stands around a reply, and the reply itself: a token is written in some 12 bytes where each of its characters is
# escaped, and a run of blanks in more.
_AROUND_A_REPLY = 1 << 24
_BYTES_A_TOKEN = 32
# The files of a batch's results are read line by line, and a line is a reply: this holds the disk and the time alone.
_MOST_OF_A_FILE = 1 << 32
# What stands in the place of the key. A shorter key is a placeholder ("none", "EMPTY") of a host that wants none, and a
# word of other texts.
_MASK = b"[key]"
_SHORTEST_KEY = 8

_FILE = re.compile(r"/files/[^/]+/content\Z")
# Headers of a body as it travels: what is handed on is decoded.
_OF_THE_TRANSFER = {b"content-encoding", b"content-length", b"transfer-encoding"}
_NO_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
# By name: the SDK hands on the errors of whichever HTTP client it was given.
_NEVER_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"})
_HINTS = {
    401: "look at the key in the environment",
    402: "top up the account",
    403: "look at what the key may ask, and from where",
    404: "look at model and base_url of the profile",
}
# For a host that refuses all questions: what of a profile decides their form.
REFUSED_HINT = "look at the profile of the model: model, structured, limit_field, max_tokens, extra_body"


@dataclass(eq=False)
class TooLarge(Exception):
    """Raised while a body is read that has more than `most` bytes."""

    most: int


@dataclass(eq=False)
class Redirected(Exception):
    """Raised for an answer that sends elsewhere: `to` is the host, never path or query, which may hold anything."""

    status: int
    to: str


class Endpoint:
    """A profile that is asked. Lives in one event loop."""

    def __init__(self, profile: Profile, llm: Llm) -> None:
        """Raises NoHost and NoKey."""
        import httpx2
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        self.profile = profile
        self.host = host(profile)
        most = llm.concurrency or profile.concurrency
        self.limits = Limits(most, profile.requests_per_minute, profile.tokens_per_minute)
        self._in_a_row = 0  # questions without an answer, since the last answer
        self._timeout = llm.timeout
        openai_key = profile.key_variable == "OPENAI_API_KEY"
        trusted = httpx2.create_ssl_context()
        secret = key(profile)
        self._clients = [
            AsyncOpenAI(
                base_url=self.host,
                # What the environment holds for one host is not to be seen by another.
                api_key=secret or "none",
                organization=None if openai_key else "",
                project=None if openai_key else "",
                max_retries=0,
                http_client=DefaultAsyncHttpxClient(
                    verify=trusted,
                    follow_redirects=False,
                    headers={"Accept-Encoding": "identity"},
                    event_hooks={"response": [response_hook(reply_bytes(profile), secret)]},
                    timeout=httpx2.Timeout(None, connect=min(_CONNECT_SECONDS, llm.timeout)),
                    limits=httpx2.Limits(
                        max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS, keepalive_expiry=30.0
                    ),
                ),
            )
            for _ in range(-(-most // _CONNECTIONS))
        ]
        self._busy = [0] * len(self._clients)

    @property
    def client(self) -> Any:
        """One of the SDK's clients, for what is not a single call: with a timeout of its own."""
        return self._clients[0].with_options(timeout=self._timeout)

    async def close(self) -> None:
        """Closes the connections."""
        for client in self._clients:
            await client.close()

    async def post(self, request: Request) -> bytes:
        """The bytes that answer a request: a completion or not, or a verdict on its text. Raises RequestFailed."""
        import openai

        place = min(range(len(self._busy)), key=self._busy.__getitem__)  # the client with the least to do
        create: Any = self._clients[place].chat.completions.with_raw_response.create
        try:
            payload = sendable(request)
        except UnreadableFile as error:  # nothing was sent: this question has no answer, others may
            raise RequestFailed("picture_unreadable", billed=False, again=False) from error
        self._busy[place] += 1
        try:
            # One limit for the whole of it: a host that sends white space to a request in its queue never times out.
            async with asyncio.timeout(self._timeout):
                # The SDK lays `extra_body` over its own and leaves it as it is: the payload is all that is sent.
                body: bytes = (await create(model=payload["model"], messages=[], extra_body=payload)).content
                return body
        except openai.APIStatusError as error:
            return self.read_status(error.response, request)
        except Redirected as error:
            redirect = redirected(self.profile, self.host, error)
            failure = RequestFailed(f"http_{error.status}", billed=False, refusal=redirect)
        except TooLarge as error:
            down = self.count_unanswered(f"replies of more than {error.most} bytes")
            failure = RequestFailed("too_large", billed=None, again=False, refusal=down)
        except (TimeoutError, openai.APITimeoutError) as error:
            failure = RequestFailed("timeout", billed=_billed(error))
        except openai.APIConnectionError as error:
            failure = RequestFailed("connection", billed=_billed(error))
        finally:
            self._busy[place] -= 1
        raise failure

    def read_status(self, response: Any, request: Request) -> bytes:
        """The verdict on the text in an answer of a status other than 200. Raises RequestFailed where it is none."""
        status: int = response.status_code
        code = code_of(response.content)
        about_one = status in ABOUT_ONE
        if about_one and (verdict := verdict_of(response.content, lengthened=request.lengthened)) is not None:
            return verdict
        word = f"http_{status}"
        after = retry_after(response.headers)
        no_credit = code in _NO_CREDIT
        if is_retried(status) and not no_credit and after <= LONGEST_WAIT:
            raise RequestFailed(word, billed=False, after=after)
        named = f"{status} ({code})" if code else f"{status}"
        if about_one and not no_credit:  # this question alone is at fault, unless many are in a row
            self._in_a_row += 1
            refused = None
            if self._in_a_row >= MOST_IN_A_ROW:
                what = f"answers {named} to {self._in_a_row} questions in a row: nothing more is sent"
                refused = refusal(self.profile, self.host, what, REFUSED_HINT)
            raise RequestFailed(word, billed=False, again=False, refusal=refused)
        closed = f", and asks to wait {after:.0f} s" if after > LONGEST_WAIT else ""
        hint = _HINTS.get(402 if no_credit else status, "look at the profile of the model")
        what = f"answers {named}{closed}: nothing more is sent"
        raise RequestFailed(word, billed=False, refusal=refusal(self.profile, self.host, what, hint))

    def count_answered(self) -> None:
        """The host has answered a question."""
        self._in_a_row = 0

    def count_unanswered(self, status: str) -> HostRefused | None:
        """A question got no answer after all its tries: why no other is to be asked, where many are in a row."""
        self._in_a_row += 1
        if self._in_a_row < MOST_IN_A_ROW:
            return None
        return no_answers(self.profile, self.host, f"{self._in_a_row} questions in a row", status)


def refusal(profile: Profile, host: str, what: str, hint: str) -> HostRefused:
    """What ends a run: `what` the host of a profile does."""
    return HostRefused(f"{profile.alias} {what}", where=f"{host}, model {profile.model}", hint=hint)


def redirected(profile: Profile, host: str, error: Redirected) -> HostRefused:
    """What ends a run whose questions would go to a host that nobody has named."""
    what = f"answers {error.status}, and sends to {error.to}: that is not followed; nothing more is sent"
    hint = "look at base_url of the profile; where the other host is the right one, name it there"
    return refusal(profile, host, what, hint)


def no_answers(profile: Profile, host: str, which: str, status: str) -> HostRefused:
    """What ends a run that would else take a host that is down for rows without an answer."""
    longer = ", or give it longer ([llm] timeout; the judge of a run: [rewards] judge_timeout)"
    hint = f"try again later{longer if 'timeout' in status else ''}: what was answered is kept"
    return refusal(profile, host, f"gives no answers: {which} ({status}); nothing more is sent", hint)


def reply_bytes(profile: Profile) -> int:
    """How many bytes the longest reply of a model may have, with all that a host writes around it."""
    return _AROUND_A_REPLY + _BYTES_A_TOKEN * LONGEST * profile.max_tokens


def response_hook(most: int, secret: str | None) -> "Callable[[Response], Awaitable[None]]":
    """The hook for a client's responses: it raises Redirected, and reading the body TooLarge beyond `most` bytes (a
    file of results: _MOST_OF_A_FILE), decoded as it is read. The `secret` is masked wherever it stands.
    """
    import httpx2

    word = secret.encode() if secret and len(secret) >= _SHORTEST_KEY else b""

    def masked(text: bytes) -> bytes:
        return text.replace(word, _MASK) if word else text

    class Body(httpx2.AsyncByteStream):
        def __init__(self, inner: "Response", most: int) -> None:
            self._inner, self._most = inner, most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            taken, kept = 0, b""
            async for chunk in self._inner.aiter_bytes():  # decoded, 1 MiB at a time at most
                taken += len(chunk)
                if taken > self._most:
                    raise TooLarge(self._most)
                text = masked(kept + chunk)
                end = max(0, len(text) - len(word) + 1) if word else len(text)  # the key may have begun behind it
                kept = text[end:]
                if end:
                    yield text[:end]
            if kept:
                yield kept

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def hook(response: "Response") -> None:
        fields = [(name, masked(value)) for name, value in response.headers.raw]
        response.headers = httpx2.Headers(fields)
        if 300 <= response.status_code < 400 and "location" in response.headers:
            raise Redirected(response.status_code, _named_host(response.headers["location"]))
        inner = httpx2.Response(response.status_code, headers=fields, stream=response.stream, request=response.request)
        response.headers = httpx2.Headers([field for field in fields if field[0].lower() not in _OF_THE_TRANSFER])
        file = response.status_code == 200 and _FILE.search(response.request.url.path) is not None
        response.stream = Body(inner, _MOST_OF_A_FILE if file else most)

    return hook


def _named_host(location: Any) -> str:
    """Whose address it is; a path alone stays with the host that was asked."""
    try:
        parts = urlsplit(location)
        if not parts.hostname:
            return "another path of its own"
        return parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    except ValueError:
        return "an address that is none"


def _billed(error: BaseException) -> Literal[False] | None:
    """Of a request that was never sent nothing is owed; of another nobody knows."""
    return False if type(error.__cause__).__name__ in _NEVER_SENT else None
