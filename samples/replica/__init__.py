"""A replica of Xinli001: its markup, our texts. See README.md."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Self
from urllib.parse import parse_qsl

from aiohttp import web

from samples.replica import xinli001
from samples.replica.page import Page, PageRequest, not_found
from samples.replica.world import World, read_posts

# Another site, which begins in a folder of the host: its pages, and what its robots.txt forbids.
Forum = tuple[Callable[[World, PageRequest], Page | None], tuple[str, ...]]


class Server:
    """Answers requests about a world: the pages of Xinli001, and of other sites in their folders."""

    def __init__(
        self, world: World, *, layout: str = "2023", crawl_delay: float = 0, forums: Mapping[str, Forum] | None = None
    ) -> None:
        self.world = world
        self.layout = layout
        self.crawl_delay = crawl_delay
        self.disallow: list[str] = []
        self._forums = forums or {}
        self._pages: dict[tuple[str, str], Page] = {}
        self._stamp: tuple[object, ...] = ()

    def app(self) -> web.Application:
        """The aiohttp application."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        return app

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The answer to any request."""
        if request.path == "/robots.txt":
            return web.Response(text=self._robots(), content_type="text/plain", charset="utf-8")
        return response_of(self.page(request))

    def page(self, request: web.Request) -> Page:
        """The page at the address of `request`."""
        self.world.advance()
        now = self.world.now()
        stamp = (self.world.version, int(now.timestamp() // 60), self.layout)
        if stamp != self._stamp:
            self._stamp, self._pages = stamp, {}
        key = (request.host, request.raw_path)
        if key in self._pages:
            return self._pages[key]
        query_string = request.rel_url.raw_query_string
        query = dict(parse_qsl(query_string, keep_blank_values=True))
        folder = f"/{request.path.split('/', 2)[1]}"
        forum = self._forums.get(folder)
        path = request.path.removeprefix(folder) if forum else request.path
        base = f"{request.scheme}://{request.host}{folder if forum else ''}"
        inner = PageRequest(path, query, query_string, base, now)
        page = forum[0](self.world, inner) if forum else xinli001.respond(self.world, inner, self.layout)
        self._pages[key] = page or not_found()
        return self._pages[key]

    def _robots(self) -> str:
        lines = ["# Invented: the replica's own.", "User-agent: *"]
        if self.crawl_delay:
            lines.append(f"Crawl-delay: {self.crawl_delay:g}")
        rules = [folder + rule for folder, (_, of_forum) in self._forums.items() for rule in of_forum]
        lines += [f"Disallow: {path}" for path in (*xinli001.ROBOTS, *rules, *self.disallow)]
        return "\n".join(lines) + "\n"


def response_of(page: Page) -> web.Response:
    """A page as aiohttp sends it."""
    return web.Response(body=page.body, status=page.status, headers={"Content-Type": page.content_type, **page.headers})


class Replica:
    """The replica at `url`, on a free port of 127.0.0.1, in a thread of this process: within the block."""

    def __init__(self, server: Server | None = None) -> None:
        """Of the samples, without a Crawl-delay, unless `server` is another one."""
        self.server = server or Server(World(read_posts()))
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
