"""The server: one process, one loop, every engine, and the switches under `/_replica/`.

A page is rendered once and kept until something new appears or, where the clock runs, the minute is over.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import parse_qsl

from aiohttp import web

from samples.replica import discourse, discuz, douban, nodebb, xinli001
from samples.replica import troubles as trouble
from samples.replica.page import Asked, Page, hidden, html_page, not_found
from samples.replica.posts import Answer, Post
from samples.replica.world import World

_KEPT = 20_000
# Every forum begins in a folder of its own.
_FORUMS: dict[str, Callable[[World, Asked], Page | None]] = {
    "/discuz": lambda world, asked: discuz.respond(world, asked, "utf-8"),
    "/discuz-gbk": lambda world, asked: discuz.respond(world, asked, "gbk"),
    "/discourse": discourse.respond,
    "/nodebb": nodebb.respond,
    "/douban": douban.respond,
}
_ROBOTS = {
    "": xinli001.ROBOTS,
    "/discuz": discuz.ROBOTS,
    "/discuz-gbk": discuz.ROBOTS,
    "/discourse": discourse.ROBOTS,
    "/nodebb": nodebb.ROBOTS,
    "/douban": douban.ROBOTS,
}
_RULES = [folder + rule for folder, rules in _ROBOTS.items() for rule in rules]
_TRUE = ("1", "true", "on", "yes")


@dataclass(slots=True)
class Log:
    """What was asked for, `/_replica/…` aside: lists in the order of the requests."""

    paths: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    user_agents: set[str] = field(default_factory=set)
    n_cookies: int = 0
    n_now: int = 0
    most_at_once: int = 0

    def answer(self) -> dict[str, object]:
        """The log as JSON has it."""
        return {
            "count": len(self.paths),
            "pages": sum(path != "/robots.txt" for path in self.paths),
            "paths": self.paths,
            "times": self.times,
            "user_agents": sorted(self.user_agents),
            "with_cookies": self.n_cookies,
            "most_at_once": self.most_at_once,
        }


class Server:
    """Answers requests about a world."""

    def __init__(self, world: World, *, layout: str = "2023", crawl_delay: float = 0, seed: int = 0) -> None:
        if layout not in xinli001.LAYOUTS:
            raise ValueError(f"layout {layout!r}: one of {', '.join(xinli001.LAYOUTS)}")
        self.world = world
        self.layout = layout
        self.crawl_delay = crawl_delay
        self.disallow: list[str] = []
        self.trouble = trouble.Troubles(seed=seed)
        self.log = Log()
        self._pages: dict[tuple[str, str], tuple[tuple[int, int], Page]] = {}

    def app(self) -> web.Application:
        """The aiohttp application."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def keep_arriving(self, per_minute: float) -> None:
        """New posts, and after each an answer to an older one, as time goes. Ends when cancelled."""
        while True:
            await asyncio.sleep(60 / per_minute)
            self.world.add_invented(self.world.now())
            self.world.add_late_answer(self.world.now())

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        hostile = self.trouble.hostile_kind(path)
        if path.startswith("/_replica/") and not hostile:
            return await self._control(request)
        log = self.log
        log.paths.append(request.raw_path)
        log.times.append(round(time.monotonic(), 4))
        log.user_agents.add(request.headers.get("User-Agent", ""))
        log.n_cookies += "Cookie" in request.headers
        log.n_now += 1
        log.most_at_once = max(log.most_at_once, log.n_now)
        try:
            if hostile:
                return await trouble.hostile_response(request, hostile, self.trouble.hostile_mb)
            return await self._page(request)
        finally:
            log.n_now -= 1

    async def _page(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path == "/robots.txt":
            return web.Response(text=self._robots(), content_type="text/plain", charset="utf-8")
        if path == "/503-error.html":
            return _response(trouble.error_503_page())
        if path == "/qa/_waf":
            return _response(trouble.slider_page())
        challenge = self.trouble.take_challenge()
        if challenge:
            return _response(trouble.challenge_page(challenge))
        delay = self.trouble.delay(path)
        if delay:
            await asyncio.sleep(delay)
        page = self._rendered(request)
        broken = self.trouble.take_break(request.raw_path)
        return _response(page) if not broken else await _broken(request, page, broken)

    def _rendered(self, request: web.Request) -> Page:
        self.world.advance()
        now = self.world.now()
        stamp = (self.world.version, int(now.timestamp() // 60))
        key = (request.host, request.raw_path)
        kept = self._pages.get(key)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        page = self._render(request, now)
        if len(self._pages) >= _KEPT:
            self._pages.clear()
        self._pages[key] = (stamp, page)
        return page

    def _render(self, request: web.Request, now: datetime) -> Page:
        query_string = request.rel_url.raw_query_string
        query = dict(parse_qsl(query_string, keep_blank_values=True))
        base = f"{request.scheme}://{request.host}"
        folder = f"/{request.path.split('/', 2)[1]}"
        forum = _FORUMS.get(folder)
        if forum is not None:
            asked = Asked(request.path.removeprefix(folder), query, query_string, base + folder, now)
            return forum(self.world, asked) or not_found()
        asked = Asked(request.path, query, query_string, base, now)
        return xinli001.respond(self.world, asked, self.layout, self.trouble.links()) or not_found()

    def _robots(self) -> str:
        lines = ["# Invented: the replica's own.", "User-agent: *"]
        if self.crawl_delay:
            lines.append(f"Crawl-delay: {self.crawl_delay:g}")
        lines += [f"Disallow: {path}" for path in (*_RULES, *self.disallow)]
        return "\n".join(lines) + "\n"

    async def _control(self, request: web.Request) -> web.Response:
        name = request.path.removeprefix("/_replica/").rstrip("/")
        action = _ACTIONS.get(name)
        if action is None:
            return _json({"error": f"no switch {name!r}: one of {', '.join(_ACTIONS)}"}, 404)
        try:
            answer = action(self, dict(request.query))
        except ValueError as error:
            return _json({"error": str(error)}, 400)
        return _json(answer)

    def _requests(self, query: dict[str, str]) -> object:
        answer = self.log.answer()
        if _on(query.get("reset")):
            self.log = Log(n_now=self.log.n_now)
        return answer

    def _tick(self, query: dict[str, str]) -> object:
        days = float(query.get("days", 0))
        return self.world.tick(days, int(query.get("posts", 0)), int(query.get("answers", 0)))

    def _challenge(self, query: dict[str, str]) -> object:
        kind = query.get("kind", "arg1")
        if kind not in trouble.CHALLENGES:
            raise ValueError(f"kind {kind!r}: one of {', '.join(trouble.CHALLENGES)}")
        self.trouble.challenge = kind if _on(query.get("on", "1")) else ""
        self.trouble.challenge_after = int(query.get("after", 0))
        self.trouble.challenge_times = int(query.get("times", -1))
        return self._state()

    def _slow(self, query: dict[str, str]) -> object:
        self.trouble.slow_seconds = float(query.get("seconds", 1))
        self.trouble.slow_rate = float(query.get("rate", 1))
        return self._state()

    def _broken(self, query: dict[str, str]) -> object:
        kind = query.get("kind", "500")
        if kind not in trouble.BROKEN:
            raise ValueError(f"kind {kind!r}: one of {', '.join(trouble.BROKEN)}")
        self.trouble.broken_kind = kind
        self.trouble.broken_rate = float(query.get("rate", 0.1))
        return self._state()

    def _hostile(self, query: dict[str, str]) -> object:
        self.trouble.hostile = _on(query.get("on", "1"))
        self.trouble.hostile_mb = int(query.get("mb", 50))
        self._pages.clear()
        return self._state()

    def _set_robots(self, query: dict[str, str]) -> object:
        self.crawl_delay = float(query.get("crawl_delay", self.crawl_delay))
        if "disallow" in query:
            self.disallow = [path for path in query["disallow"].split(",") if path]
        return self._state()

    def _set_layout(self, query: dict[str, str]) -> object:
        layout = query.get("layout", "2023")
        if layout not in xinli001.LAYOUTS:
            raise ValueError(f"layout {layout!r}: one of {', '.join(xinli001.LAYOUTS)}")
        self.layout = layout
        self._pages.clear()
        return self._state()

    def _reset(self, _query: dict[str, str]) -> object:
        self.trouble.clear()
        self._pages.clear()
        return self._state()

    def _state(self, _query: dict[str, str] | None = None) -> dict[str, object]:
        return {
            "now": self.world.now().isoformat(),
            "posts": len(self.world.newest()),
            "layout": self.layout,
            "crawl_delay": self.crawl_delay,
            "challenge": self.trouble.challenge,
            "slow_seconds": self.trouble.slow_seconds,
            "broken_rate": self.trouble.broken_rate,
            "hostile": self.trouble.hostile,
        }

    def _posts(self, _query: dict[str, str]) -> object:
        self.world.advance()
        return [_truth(post) for post in self.world.newest()]


def _truth(post: Post) -> dict[str, object]:
    """A post as it is, with its ids on every site."""
    return {
        "number": post.number,
        "key": post.key,
        "ids": {
            "xinli001": str(xinli001.qid(post)),
            "discuz": str(discuz.tid(post)),
            "discourse": str(discourse.topic_id(post)),
            "nodebb": str(nodebb.tid(post)),
            "douban": str(douban.topic_id(post)),
        },
        "board": str(discuz.board_of(post)),
        "title": post.title,
        "description": post.description,
        "topic": post.topic,
        "subtopics": post.subtopics,
        "anonymous": post.author is None,
        "notice": post.notice,
        "posted_at": post.posted_at.isoformat(),
        "answers": [_true_answer(answer) for answer in post.answers],
    }


def _true_answer(answer: Answer) -> dict[str, object]:
    return {
        "ids": {
            "xinli001": str(xinli001.aid(answer)),
            "discuz": str(discuz.pid(answer)),
            "discourse": str(discourse.post_id(answer)),
            "nodebb": str(nodebb.pid(answer)),
            "douban": str(douban.comment_id(answer)),
        },
        "text": answer.text,
        "author_role": answer.author_role,
        "posted_at": answer.posted_at.isoformat(),
        "likes": answer.likes,
        "recommended": answer.recommended,
        "hidden_in_forums": hidden(answer),
    }


_ACTIONS: dict[str, Callable[[Server, dict[str, str]], object]] = {
    "state": Server._state,
    "requests": Server._requests,
    "posts": Server._posts,
    "tick": Server._tick,
    "challenge": Server._challenge,
    "slow": Server._slow,
    "broken": Server._broken,
    "hostile": Server._hostile,
    "robots": Server._set_robots,
    "layout": Server._set_layout,
    "reset": Server._reset,
}


def _on(value: str | None) -> bool:
    return (value or "").lower() in _TRUE


def _json(answer: object, status: int = 200) -> web.Response:
    return web.Response(
        text=json.dumps(answer, ensure_ascii=False), content_type="application/json", charset="utf-8", status=status
    )


def _response(page: Page) -> web.Response:
    return web.Response(body=page.body, status=page.status, headers={"Content-Type": page.content_type, **page.headers})


async def _broken(request: web.Request, page: Page, kind: str) -> web.StreamResponse:
    if kind == "500":
        return _response(html_page("<html><body>500</body></html>", 500))
    # Never before the head is over: what is lost is content.
    half = page.body[: max(1, len(page.body) * 2 // 3)]
    if kind == "cut":
        return _response(Page(half, page.content_type, page.status))
    response = web.StreamResponse(headers={"Content-Type": page.content_type, "Content-Length": str(len(page.body))})
    await response.prepare(request)
    await response.write(half)
    if request.transport is not None:
        request.transport.close()
    return response


async def serve(
    server: Server, port: int, *, arrivals: float = 0, started: Callable[[str], None], until: asyncio.Event
) -> None:
    """Serves on 127.0.0.1 (port 0: a free one) until the event is set; `started` is told the URL."""
    runner = web.AppRunner(server.app(), access_log=None, handle_signals=False)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=512)
    await site.start()
    host, bound = runner.addresses[0][:2]
    arriving = asyncio.create_task(server.keep_arriving(arrivals)) if arrivals > 0 else None
    started(f"http://{host}:{bound}")
    try:
        await until.wait()
    finally:
        if arriving is not None:
            arriving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await arriving
        await runner.cleanup()
