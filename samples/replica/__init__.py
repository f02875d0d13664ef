"""A replica of the sites: their markup, our texts. See README.md."""

import asyncio
import threading
from datetime import datetime
from pathlib import Path
from typing import Self

from aiohttp import web

from samples.replica.server import Server
from samples.replica.world import SAMPLES, SHANGHAI, World, read_posts


def make_world(
    posts: int | None = None, now: datetime | None = None, *, file: Path = SAMPLES, days: float = 14
) -> World:
    """The site with `posts` in all: those of `file` (None: them alone), then invented ones over the `days` before now.

    A given `now` (naive: Shanghai) stands still.
    """
    if now is not None and now.tzinfo is None:
        now = now.replace(tzinfo=SHANGHAI)
    samples = read_posts(file)
    n_posts = len(samples) if posts is None else posts
    return World(samples[:n_posts], now, invented=max(0, n_posts - len(samples)), days=days)


class Replica:
    """The replica at `url`, on a free port of 127.0.0.1, in a thread of this process: within the block."""

    def __init__(self, server: Server | None = None) -> None:
        """Of the samples alone, without a Crawl-delay, unless `server` is another one."""
        self.server = server or Server(make_world())
        self.url = ""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._runner = web.AppRunner(self.server.app(), access_log=None, handle_signals=False)
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    async def _start(self) -> str:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=512).start()
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
