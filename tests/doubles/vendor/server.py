"""Chat completions as vendors of OpenAI's kind serve them, what goes wrong with them, and what they cost.

What goes wrong follows from a seed, the payload and how often it was asked; nothing depends on the order of requests.
`GET /_vendor/stats` and `/_vendor/book` tell what was billed; `POST /_vendor/script` changes the script.
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
from tests.doubles.vendor.batches import Batches, dropped, error
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
_ERRORS = {"429": (429, "rate_limit_exceeded"), "500": (500, "server_error"), "refused": (400, "content_filter")}
_LIMIT_FIELDS = {"max_tokens", "max_completion_tokens"}
_PER_MESSAGE = 8
_PER_MESSAGE_AT_MOST = 16
# Nano-units of the currency a token: $ a million tokens × 1000.
_PRICE_INPUT, _PRICE_OUTPUT = 2_500, 10_000


@dataclass(slots=True)
class Script:
    """How the vendor behaves."""

    seed: int = 0
    latency: float = 0.0
    hang: float = 2.0
    retry_after: float = 0.0
    models: Sequence[str] = ()  # others get 404; none: any
    limit_field: str | None = None  # the name of a reply's length; who gives it another gets 400; none: either
    poison: Sequence[str] = ()  # a payload with one of these in its messages gets 400, and no word why
    greedy: bool = False  # bills the worst case: the bytes of the messages, and the whole of max_tokens
    bodies: list[str] = field(default_factory=list)  # what the next requests get, as it is, whatever they ask
    faults: dict[str, float] = field(default_factory=dict)  # shares

    def fault(self, digest: str, attempt: int) -> str | None:
        """What goes wrong with this attempt, if anything."""
        assert self.faults.keys() <= set(FAULTS)
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
        app.router.add_get("/_vendor/stats", self._stats)
        app.router.add_get("/_vendor/book", self._book)
        app.router.add_post("/_vendor/script", self._change)
        app.router.add_post("/_vendor/anew", self._anew)
        self.batches.add_to(app)
        return app

    def completion(
        self, payload: dict[str, Any], entry: Entry, fault: str | None = None, *, share: Fraction = Fraction(1)
    ) -> dict[str, Any]:
        """The body that answers a payload, billed at a `share` of the price."""
        most = payload.get("max_tokens") or payload["max_completion_tokens"]
        text = "OK" if fault == "malformed" else "" if fault == "filter" else reply(payload)
        reason = "content_filter" if fault == "filter" else "stop"
        if fault == "length" or len(text) > most:
            text, reason = text[: min(most, len(text) // 2)], "length"
        message = {"role": "assistant", "content": text, "refusal": None}
        if "r1" in payload["model"].casefold() and fault != "filter":
            message["reasoning_content"] = "（编造的思路）先读一遍，再想怎么回。"[: max(0, most - len(text))]
        prompt = sum(len(one["content"]) + _PER_MESSAGE for one in payload["messages"])
        completion = len(text) + len(message.get("reasoning_content") or "")
        if self.script.greedy:
            prompt, completion = _bytes(payload), most
        cost = (prompt * _PRICE_INPUT + completion * _PRICE_OUTPUT) * share
        assert cost.denominator == 1, "prices in whole nano-units, whatever the share"
        entry.billed += 1
        entry.nano += cost.numerator
        return {
            "id": "chatcmpl-invented",
            "object": "chat.completion",
            "created": 0,
            "model": f"invented/{payload['model']}",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
        }

    def unwanted(self, payload: dict[str, Any]) -> str | None:
        """The code of the 400 that a payload gets, if any."""
        if self.script.limit_field is not None and (_LIMIT_FIELDS & payload.keys()) - {self.script.limit_field}:
            return "unsupported_parameter"
        poisoned = any(word in one["content"] for word in self.script.poison for one in payload["messages"])
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
            return error(404, "model_not_found")
        book.connections.add(request.transport)
        digest, entry = self.entry(payload)
        if (code := self.unwanted(payload)) is not None:
            return error(400, code)
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
        if fault != "429":
            await asyncio.sleep(script.hang if fault == "timeout" else script.latency)
        if fault in _ERRORS:
            return error(*_ERRORS[fault], retry_after=script.retry_after if fault == "429" else 0)
        if fault == "cut":  # the beginning of an answer, and less of it than was promised
            response = web.StreamResponse(headers={"Content-Length": "4096", "Content-Type": "application/json"})
            await response.prepare(request)
            await response.write(b'{"id": "chatcmpl-invented')
        if fault in {"cut", "timeout"}:
            return dropped(request)
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

    async def _stats(self, _: web.Request) -> web.Response:
        book, entries = self.book, self.book.entries.values()
        told = {name: sum(getattr(entry, name) for entry in entries) for name in ("billed", "nano")}
        told |= {"requests": sum(entry.asked for entry in entries), "most_in_flight": book.most_in_flight}
        return web.json_response(told | {"connections": len(book.connections), "faults": book.happened})

    async def _book(self, _: web.Request) -> web.Response:
        book = {digest: [entry.asked, entry.billed, entry.nano] for digest, entry in self.book.entries.items()}
        return web.json_response(book)


def _bytes(payload: dict[str, Any]) -> int:
    """As many tokens as a vendor could bill: one a byte of the messages and of the schema, and the template's."""
    form = payload.get("response_format")
    texts = [one["content"] for one in payload["messages"]] + ([json.dumps(form, ensure_ascii=False)] if form else [])
    return sum(len(text.encode()) + _PER_MESSAGE_AT_MOST for text in texts)


async def serve(server: Server, port: int, *, started: Callable[[str], None], until: asyncio.Event) -> None:
    """Serves on 127.0.0.1 until the event is set; `started` gets the address."""
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=0)  # nobody waits for what is under way
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
        started(f"http://127.0.0.1:{runner.addresses[0][1]}")
        await until.wait()
    finally:
        await runner.cleanup()
