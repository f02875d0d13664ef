"""An encoder service of the tests: vectors that are written down, and failures on demand."""

from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer


class Encoder:
    """Gives every text the vector that stands for it, and the statuses in `fails` before it answers at all."""

    def __init__(self, vectors: dict[str, list[float]], threshold: Any = 0.5) -> None:
        self.vectors, self.threshold = vectors, threshold
        self.asked: list[dict[str, Any]] = []
        self.abouts = 0
        self.fails: list[tuple[int, dict[str, Any]]] = []

    def server(self) -> TestServer:
        made = web.Application()
        made.router.add_get("/about", self._about)
        made.router.add_post("/embed", self._embed)
        return TestServer(made)

    async def _about(self, _: web.Request) -> web.Response:
        self.abouts += 1
        return web.json_response({"folder": "made", "threshold": self.threshold})

    async def _embed(self, request: web.Request) -> web.Response:
        if self.fails:
            status, body = self.fails.pop(0)
            return web.json_response(body, status=status)
        body = await request.json()
        self.asked.append(body)
        return web.json_response({"vectors": [self.vectors[text] for text in body["texts"]]})
