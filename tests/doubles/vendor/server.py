"""The server: one process, one loop, `/v1/chat/completions`, and switches under `/_vendor/`.

What goes wrong follows from the seed, the payload and how often it was asked, so that a run can be had again.
"""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from aiohttp import web

from schemas.ids import unit_interval
from tests.doubles.vendor.batches import Batches
from tests.doubles.vendor.replies import reply

# What can go wrong, in the order in which the shares are laid out.
FAULTS = (
    "429",  # with Retry-After
    "500",
    "timeout",  # no answer for `hang` seconds, then none
    "cut",  # the connection breaks in the middle of the body
    "length",  # finish_reason length: the reply stops half-way
    "malformed",  # a reply of another form than was asked for
    "filter",  # finish_reason content_filter
    "refused",  # 400 with the code of a content filter
)
_ERRORS = {
    "500": (500, "server_error", "invented: something broke"),
    "refused": (400, "content_filter", "invented: the text was filtered"),
}
_LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")
_PER_MESSAGE = 8
_PER_MESSAGE_AT_MOST = 16
_MARK = "invented"


@dataclass(slots=True)
class Script:
    """How the vendor behaves. Prices are nano-units of the currency a token: $ a million tokens × 1000."""

    seed: int = 0
    latency: float = 0.0
    hang: float = 2.0
    retry_after: float = 0.0
    models: Sequence[str] = ()  # others get 404; none: any
    price_input: int = 2_500
    price_output: int = 10_000
    limit_field: str | None = None  # the name of a reply's length; who gives it another gets 400; none: either
    poison: Sequence[str] = ()  # a payload with one of these in its messages gets 400, and no word why
    greedy: bool = False  # bills the worst case: the bytes of the messages, and the whole of max_tokens
    bodies: list[str] = field(default_factory=list)  # what the next requests get, as it is, whatever they ask
    faults: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if unknown := self.faults.keys() - set(FAULTS):
            raise ValueError(f"no fault {', '.join(sorted(unknown))}: known are {', '.join(FAULTS)}")

    def fault(self, digest: str, attempt: int) -> str | None:
        """What goes wrong with this attempt, if anything."""
        left = unit_interval(self.seed, digest, attempt)
        for kind in FAULTS:
            left -= self.faults.get(kind, 0.0)
            if left < 0:
                return kind
        return None


@dataclass(slots=True)
class Entry:
    """The book's entry of one payload."""

    asked: int = 0
    billed: int = 0
    nano: int = 0


@dataclass(slots=True)
class Book:
    """What happened since the book was opened."""

    entries: dict[str, Entry] = field(default_factory=dict)
    happened: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    most_in_flight: int = 0
    connections: set[Any] = field(default_factory=set)

    def stats(self) -> dict[str, Any]:
        """In figures."""
        return {
            "requests": sum(entry.asked for entry in self.entries.values()),
            "billed": sum(entry.billed for entry in self.entries.values()),
            "nano": sum(entry.nano for entry in self.entries.values()),
            "payloads": len(self.entries),
            "most_in_flight": self.most_in_flight,
            "connections": len(self.connections),
            "faults": dict(self.happened),
        }


class Server:
    """Answers requests and writes its book."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.book = Book()
        self.batches = Batches(self)

    def app(self) -> web.Application:
        """The aiohttp application."""
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/_vendor/stats", self._told(self._stats))
        app.router.add_get("/_vendor/book", self._told(self._book))
        app.router.add_post("/_vendor/script", self._change)
        app.router.add_post("/_vendor/anew", self._anew)
        self.batches.add_to(app)
        return app

    def completion(
        self, payload: dict[str, Any], entry: Entry, fault: str | None = None, *, share: Fraction = Fraction(1)
    ) -> dict[str, Any]:
        """The body that answers a payload, billed at a `share` of the price."""
        most = payload.get("max_tokens") or payload.get("max_completion_tokens") or 4096
        text = "OK" if fault == "malformed" else "" if fault == "filter" else reply(payload)
        reason = "stop"
        if fault == "filter":
            reason = "content_filter"
        if fault == "length" or len(text) > most:
            text, reason = text[: min(most, len(text) // 2)], "length"
        message = {"role": "assistant", "content": text, "refusal": None}
        if "r1" in payload["model"].casefold() and fault != "filter":
            message["reasoning_content"] = "（编造的思路）先读一遍，再想怎么回。"[: max(0, most - len(text))]
        messages = payload["messages"]
        prompt = sum(len(one["content"]) + _PER_MESSAGE for one in messages)
        completion = len(text) + len(message.get("reasoning_content") or "")
        if self.script.greedy:
            prompt = _bytes(payload)
            completion = most
        cost = (prompt * self.script.price_input + completion * self.script.price_output) * share
        assert cost.denominator == 1, "prices in whole nano-units, whatever the share"
        entry.billed += 1
        entry.nano += cost.numerator
        return {
            "id": f"chatcmpl-{_MARK}",
            "object": "chat.completion",
            "created": 0,
            "model": f"{_MARK}/{payload['model']}",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
        }

    def unwanted(self, payload: dict[str, Any]) -> str | None:
        """The code of the 400 that a payload gets, if any."""
        named = {name for name in _LIMIT_FIELDS if name in payload}
        if self.script.limit_field is not None and named - {self.script.limit_field}:
            return "unsupported_parameter"
        texts = [one["content"] for one in payload["messages"]]
        poisoned = any(word in text for word in self.script.poison for text in texts)
        return "invalid_value" if poisoned else None

    def entry(self, payload: dict[str, Any]) -> tuple[str, Entry]:
        """The SHA-256 of a payload's canonical JSON, and its entry in the book, counted as asked once more."""
        written = json.dumps(payload, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        digest = hashlib.sha256(written.encode()).hexdigest()
        entry = self.book.entries.setdefault(digest, Entry())
        entry.asked += 1
        return digest, entry

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        script, book = self.script, self.book
        payload = json.loads(await request.read())
        if script.models and payload["model"] not in script.models:
            return _error(404, "model_not_found", "invented: no such model")
        book.connections.add(request.transport)
        digest, entry = self.entry(payload)
        if (code := self.unwanted(payload)) is not None:
            book.happened[code] += 1
            return _error(400, code, "invented: this request cannot be")
        if script.bodies:
            return web.Response(text=script.bodies.pop(0), content_type="application/json")
        fault = script.fault(digest, entry.asked)
        book.happened[fault or "none"] += 1
        book.in_flight += 1
        book.most_in_flight = max(book.most_in_flight, book.in_flight)
        try:
            return await self._reply(request, payload, entry, fault)
        finally:
            book.in_flight -= 1

    async def _reply(
        self, request: web.Request, payload: dict[str, Any], entry: Entry, fault: str | None
    ) -> web.StreamResponse:
        script = self.script
        if fault == "429":
            return _error(429, "rate_limit_exceeded", "invented: too fast", {"Retry-After": f"{script.retry_after:g}"})
        await asyncio.sleep(script.hang if fault == "timeout" else script.latency)
        if fault in _ERRORS:
            return _error(*_ERRORS[fault])
        if fault == "cut":
            await _begun(request)
        if fault in {"cut", "timeout"}:
            return _dropped(request)
        return web.json_response(self.completion(payload, entry, fault))

    async def _change(self, request: web.Request) -> web.Response:
        for name, value in (await request.json()).items():
            setattr(self.script, name, value)
        return web.json_response({})

    async def _anew(self, request: web.Request) -> web.Response:
        """As if it had been started with this script. What is under way ends in the old book."""
        self.script, self.book = Script(), Book()
        self.batches.forget()
        return await self._change(request)

    def _stats(self) -> dict[str, Any]:
        return self.book.stats()

    def _book(self) -> dict[str, Any]:
        return {digest: [entry.asked, entry.billed, entry.nano] for digest, entry in self.book.entries.items()}

    @staticmethod
    def _told(what: Callable[[], Any]) -> Callable[[web.Request], Any]:
        async def tell(_: web.Request) -> web.Response:
            return web.json_response(what())

        return tell


def _bytes(payload: dict[str, Any]) -> int:
    """As many tokens as a vendor could bill: one a byte of the messages and of the schema, and the template's."""
    form = payload.get("response_format")
    texts = [one["content"] for one in payload["messages"]] + ([json.dumps(form, ensure_ascii=False)] if form else [])
    return sum(len(text.encode()) + _PER_MESSAGE_AT_MOST for text in texts)


def _error(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response(
        {"error": {"message": message, "code": code, "type": code}}, status=status, headers=headers
    )


def _dropped(request: web.Request) -> web.StreamResponse:
    """No answer at all: the connection is gone."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _begun(request: web.Request) -> None:
    """The beginning of an answer, and less of it than was promised."""
    response = web.StreamResponse(headers={"Content-Length": "4096", "Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"id": "chatcmpl-' + _MARK.encode())


async def serve(server: Server, port: int, *, started: Callable[[str], None], until: asyncio.Event) -> None:
    """Serves on 127.0.0.1 until the event is set; `started` gets the address."""
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=0)  # nobody waits for what is under way
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024)
        await site.start()
        assert site._server is not None
        started(f"http://127.0.0.1:{runner.addresses[0][1]}")
        await until.wait()
    finally:
        await runner.cleanup()
