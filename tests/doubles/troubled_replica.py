"""The replica for tests: its log of requests, its clock, forums beside it, and what goes wrong on purpose."""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from aiohttp import web
from forums import FORUMS
from forums.forum_page import hidden, message_id, topic_id
from invented_posts import invent, invent_answer, make_world

import samples.replica
from samples.replica import Server, response_of, xinli001
from samples.replica.page import NOTE, Page, html_page
from samples.replica.world import Post

_RECENT = 60  # late answers go to one of so many newest posts
_MOVED = "http://wappass.example.com/static/captcha/tuxing.html"
_EMPTY = '<div id="main"><div id="left"><ul class="content"></ul></div></div>'
# Shaped like Alibaba Cloud's; the script is ours and solves nothing.
_CHALLENGE = "var arg1='5B9C0F1E2D3A4B5C6D7E8F90A1B2C3D4E5F60718';document.cookie='acw_sc__v2=replica;path=/';"
# What a wall against crawlers sends instead of a page, by the sign that we know it by.
WALLS = {
    "challenge": html_page(f"<html><head>{NOTE}<script>{_CHALLENGE}</script></head><body></body></html>"),
    "overload": Page(b"", status=302, headers={"Location": "/503-error.html"}),
    "captcha": Page(b"", status=302, headers={"Location": _MOVED}),
    "refusals": html_page(f"<html><body>{NOTE}<h1>403</h1></body></html>", 403),
    "refusals 429": html_page(f"<html><body>{NOTE}<h1>429</h1></body></html>", 429),
    "emptiness": html_page(f'<html><head><meta charset="utf-8"></head><body>{NOTE}{_EMPTY}</body></html>'),
}


@dataclass(slots=True)
class Troubles:
    """The switches. Everything is off at first."""

    wall: str = ""  # of WALLS: every page becomes it
    wall_after: int = 0  # pages
    slow_seconds: float = 0


@dataclass(slots=True)
class Log:
    """The requests: lists in their order."""

    paths: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    user_agents: set[str] = field(default_factory=set)
    n_cookies: int = 0
    n_now: int = 0
    most_at_once: int = 0


class TroubledServer(Server):
    """The replica's server with forums, a log and troubles."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, forums=FORUMS)
        self.log, self.trouble = Log(), Troubles()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        log = self.log
        log.paths.append(request.raw_path)
        log.times.append(time.monotonic())
        log.user_agents.add(request.headers.get("User-Agent", ""))
        log.n_cookies += "Cookie" in request.headers
        log.n_now += 1
        log.most_at_once = max(log.most_at_once, log.n_now)
        try:
            return await self._troubled(request)
        finally:
            log.n_now -= 1

    async def _troubled(self, request: web.Request) -> web.StreamResponse:
        trouble = self.trouble
        if request.path == "/robots.txt":
            return await super().handle(request)
        if trouble.wall and trouble.wall_after == 0:
            return response_of(WALLS[trouble.wall])
        trouble.wall_after = max(0, trouble.wall_after - 1)
        await asyncio.sleep(trouble.slow_seconds)
        return await super().handle(request)


class Replica(samples.replica.Replica):
    """The replica in a thread of the test's process; `server` has its switches and its log."""

    server: TroubledServer

    def __init__(self, posts: int | None = None, now: str | None = None, **options: Any) -> None:
        world = make_world(posts, datetime.fromisoformat(now) if now else None, **options)
        super().__init__(TroubledServer(world))
        self._n_ticked = 0

    @property
    def log(self) -> Log:
        """The requests since the start, or since `reset`."""
        return self.server.log

    def reset(self) -> None:
        """Begins an empty log, and switches all troubles off."""
        self.server.log, self.server.trouble = Log(), Troubles()
        self.server.crawl_delay, self.server.disallow = 0, []

    def _in_loop(self, function: Callable[[], Any]) -> Any:
        """What `function` gives in the thread of the server: a world is not for several threads."""

        async def call() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    def posts(self) -> list[dict[str, Any]]:
        """The truth: all posts that are there now, newest first, with their ids on every site."""
        self._in_loop(self.server.world.advance)
        return [_truth(post) for post in self.server.world.newest()]

    def tick(self, days: float = 0, posts: int = 0, answers: int = 0) -> dict[str, Any]:
        """Moves the clock; new posts and late answers come. Gives the time, and the numbers of the posts."""
        return self._in_loop(lambda: self._tick(timedelta(days=days), posts, answers))

    def _tick(self, step: timedelta, posts: int, answers: int) -> dict[str, Any]:
        world = self.server.world
        before, counts = world.now(), {post.number: len(post.answers) for post in world.newest()}
        for k in range(posts + answers):
            self._n_ticked += 1
            at, key = before + step * ((k + 0.5) / (posts + answers)), f"late {self._n_ticked}"
            if k < posts:
                world.add(invent(-self._n_ticked, at))
            else:
                world._push(at, random.Random(key).choice(world.newest()[:_RECENT]), invent_answer(key, at))
        world._at += step
        world.advance()
        now = {post.number: len(post.answers) for post in world.newest()}
        changed = [number for number, count in counts.items() if now[number] > count]
        return {"now": world.now().isoformat(), "new": sorted(now.keys() - counts.keys()), "changed": sorted(changed)}


def _truth(post: Post) -> dict[str, Any]:
    """A post as it is, with its ids on every site."""
    return {
        **{name: getattr(post, name) for name in ("number", "title", "description", "topic")},
        "ids": {"xinli001": str(xinli001.qid(post)), "forum": str(topic_id(post))},
        "posted_at": post.posted_at.isoformat(),
        "answers": [
            {
                "ids": {"xinli001": str(xinli001.aid(one)), "forum": str(message_id(one))},
                "text": one.text,
                "hidden": hidden(one),
            }
            for one in post.answers
        ],
    }
