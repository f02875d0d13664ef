"""A host of models in this process, whose replies a test decides, and that counts what it is asked at once."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable
from typing import Any, Self

from aiohttp import web
from fake_model import ANSWERS

from pipelines.judge.judging import MINDCHAT, UNIFIED

Payload = dict[str, Any]
GOOD = json.dumps(
    {"why": "接住了感受。", "fluency_comfort": 4, "empathic_understanding": 5, "support_encouragement": 3},
    ensure_ascii=False,
)


def verdict(payload: Payload) -> str:
    """A reply to any question of the judges: C's steps are right, and A is better."""
    asked = json.loads([one["content"] for one in payload["messages"] if one["role"] == "user"][-1])
    if "answer" in asked:
        return GOOD
    return f"第{'一二三'[asked['step'] - 1]}步正确。" if "step" in asked else "回应A更好。"


def drawn(payload: Payload) -> str:
    """A verdict on any question of the judges that a hash of it draws, as the fake model gives it."""
    asked = json.loads([one["content"] for one in payload["messages"] if one["role"] == "user"][-1])
    return ANSWERS[MINDCHAT if "answer" in asked else UNIFIED](asked)


class JudgeHost:
    """Answers each request with `reply(payload)` after `latency(payload)` seconds.

    None: 500. Bytes: as they are. A dict: 400 with this error.
    """

    def __init__(
        self,
        reply: Callable[[Payload], str | bytes | Payload | None] = verdict,
        latency: Callable[[Payload], float] = lambda _: 0.0,
    ) -> None:
        self.reply, self.latency = reply, latency
        self.asked: list[Payload] = []
        self.in_flight = self.most_in_flight = self.prompt_tokens = 0

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)))
        self._thread.start()
        assert ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self.die()

    def die(self) -> None:
        """From here on nobody listens."""
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it ended meanwhile
                self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/v1/chat/completions", self._complete)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
            self.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            ready.set()
            await self._over.wait()
        finally:
            await runner.cleanup()

    async def _complete(self, request: web.Request) -> web.Response:
        payload = await request.json()
        self.asked.append(payload)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency(payload))
        finally:
            self.in_flight -= 1
        said = self.reply(payload)
        if said is None:
            return web.json_response({"error": {"code": "server_error"}}, status=500)
        if isinstance(said, dict):
            return web.json_response({"error": said}, status=400)
        if isinstance(said, bytes):
            return web.Response(body=said, content_type="application/json")
        message = {"role": "assistant", "content": said, "refusal": None}
        # Not fewer than so long a text can have.
        prompt = max(100, sum(len(message["content"]) for message in payload["messages"]) // 8)
        self.prompt_tokens += prompt
        usage = {"prompt_tokens": prompt, "completion_tokens": 50, "total_tokens": prompt + 50}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response(
            {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
        )
