"""The other side of the wire that rewards speak (`pipelines.rewards.services`); a verdict follows from the text."""

import asyncio
import os
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from unittest import mock

from aiohttp import web

from pipelines.rewards.services import close

Answer = Callable[[str, dict[str, Any]], Any]  # a path and the question; an answer, or a response


def verdict(path: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Any text has its verdict, and the same text the same."""
    if path == "/mindchat":
        fluency, empathy, support = (1 + drawn(asked["answer"], at) % 5 for at in range(3))
        return {"ok": True, "fluency": fluency, "empathy": empathy, "support": support, "words": "好"}
    steps = [bool(step) and drawn(step, 0) % 2 == 0 for step in asked["steps"]]
    places = ("first", "second", "both", "neither")
    preference = places[drawn(asked["response"], 1) % 4] if asked["response"] else "first"
    return {"ok": True, "steps": steps, "preference": preference, "words": "好"}


def drawn(text: str, at: int) -> int:
    return zlib.crc32(f"{at}{text}".encode())


@asynccontextmanager
async def serving(answer: Answer = verdict) -> AsyncIterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """Its address, and everything that it was asked."""
    questions: list[tuple[str, dict[str, Any]]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        assert request.method == ("POST" if request.can_read_body else "GET")
        asked = await request.json() if request.can_read_body else {}
        questions.append((request.path, asked))
        found = answer(request.path, asked)
        if asyncio.iscoroutine(found):
            found = await found
        if isinstance(found, web.StreamResponse):
            return found
        return web.json_response(found)

    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", questions
    finally:
        await runner.cleanup()


def beside(answer: Answer, variable: str, does: Callable[[], Awaitable[Any]], token: str = "") -> tuple[Any, list[Any]]:
    """What a coroutine gives while a service is up that `variable` names, and what that was asked."""

    async def run() -> tuple[Any, list[Any]]:
        async with serving(answer) as (address, questions):
            with mock.patch.dict(os.environ, {variable: address + token}):
                try:
                    return await does(), questions
                finally:
                    await close()

    return asyncio.run(run())
