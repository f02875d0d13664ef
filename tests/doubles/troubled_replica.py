"""The replica for tests: its log of requests, its clock, what goes wrong on purpose, and pages that harm a crawler."""

import asyncio
import random
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from forums import FORUMS, discourse, discuz, douban, nodebb
from forums.forum_page import hidden
from invented_posts import invent_answer, make_world

import samples.replica
from samples.replica import Server, response_of, xinli001
from samples.replica.page import NOTE, Page, html_page, whole_number
from samples.replica.world import SAMPLES, Answer, Post
from samples.replica.xinli001 import FIRST_QID
from schemas.ids import stable_int, unit_interval

HOSTILE = ("loop", "bomb", "big", "entity", "redirect-offsite", "redirect-file", "deep", "endless")
ELSEWHERE = "http://other-host.example.com"
# Ids of questions that only hostile pages have: far above all others.
_FIRST_HOSTILE = FIRST_QID + 800_000_000
_MEGABYTE = 1 << 20
_RECENT = 60  # late answers go to one of so many newest posts


@dataclass(slots=True)
class Troubles:
    """The switches. Everything is off at first."""

    challenge: str = ""  # the kind of page that every page becomes
    challenge_after: int = 0  # pages
    slow_seconds: float = 0
    broken_rate: float = 0
    hostile: bool = False
    hostile_mb: int = 50


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
    """The replica's server with a log and with troubles."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"forums": FORUMS} | options)
        self.trouble = Troubles()
        self.log = Log()
        self._attempts: dict[str, int] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        log = self.log
        log.paths.append(request.raw_path)
        log.times.append(round(time.monotonic(), 4))
        log.user_agents.add(request.headers.get("User-Agent", ""))
        log.n_cookies += "Cookie" in request.headers
        log.n_now += 1
        log.most_at_once = max(log.most_at_once, log.n_now)
        try:
            return await self._troubled(request)
        finally:
            log.n_now -= 1

    async def _troubled(self, request: web.Request) -> web.StreamResponse:
        trouble, path = self.trouble, request.path
        if path == "/robots.txt":
            return await super().handle(request)
        if path == "/503-error.html":
            return response_of(html_page(f"<html><title>503</title><body>{NOTE}系统繁忙</body></html>"))
        k = whole_number(path.removeprefix("/qa/"), 0) - _FIRST_HOSTILE
        if trouble.hostile and 0 <= k < len(HOSTILE):
            return await hostile_response(request, HOSTILE[k], trouble.hostile_mb)
        if trouble.challenge and trouble.challenge_after == 0:
            return response_of(challenge_page(trouble.challenge))
        trouble.challenge_after = max(0, trouble.challenge_after - 1)
        await asyncio.sleep(trouble.slow_seconds)
        page = self.page(request)
        if trouble.hostile and path == "/qa" and request.query.get("page", "1") == "1":
            rows = "".join(_row_link(href) for href in _links())
            page = Page(page.body.replace(b'<ul class="content">\n', b'<ul class="content">\n' + rows.encode(), 1))
        broken = self._take_break(request.raw_path)
        return await _broken(request, page, broken) if broken else response_of(page)

    def _take_break(self, path: str) -> str:
        """How this page is broken, empty for not at all. Seeded by path and attempt: a second request may help."""
        attempt = self._attempts[path] = self._attempts.get(path, 0) + 1
        if unit_interval("broken", path, attempt) >= self.trouble.broken_rate:
            return ""
        return ("500", "cut", "drop")[stable_int(f"{path}\x1f{attempt}") % 3]


class Replica(samples.replica.Replica):
    """The replica in a thread of the test's process, and its switches."""

    server: TroubledServer

    def __init__(
        self, posts: int | None = None, now: str | None = None, *, file: Path = SAMPLES, days: float = 14
    ) -> None:
        world = make_world(posts, datetime.fromisoformat(now) if now else None, file=file, days=days)
        super().__init__(TroubledServer(world))
        self._n_late = 0

    def _in_loop(self, function: Callable[[], Any]) -> Any:
        """What `function` gives in the thread of the server: a world is not for several threads."""

        async def call() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    def posts(self) -> list[dict[str, Any]]:
        """The truth: all posts that are there now, newest first, with their ids on every site."""
        world = self.server.world

        def truth() -> list[dict[str, Any]]:
            world.advance()
            return [_truth(post) for post in world.newest()]

        return self._in_loop(truth)

    def requests(self, *, reset: bool = False) -> dict[str, Any]:
        """The requests since the start (or the last reset)."""
        log = self.server.log
        if reset:
            self.server.log = Log(n_now=log.n_now)
        return {
            "count": len(log.paths), "paths": log.paths, "times": log.times, "user_agents": sorted(log.user_agents),
            "with_cookies": log.n_cookies, "most_at_once": log.most_at_once,
        }  # fmt: skip

    def tick(self, days: float = 0, posts: int = 0, answers: int = 0) -> dict[str, Any]:
        """Moves the clock; new posts and late answers come. Gives the time, and the numbers of the posts."""
        return self._in_loop(lambda: self._tick(timedelta(days=days), posts, answers))

    def _tick(self, step: timedelta, posts: int, answers: int) -> dict[str, Any]:
        world = self.server.world
        before, counts = world.now(), {post.number: len(post.answers) for post in world.newest()}
        for k in range(posts):
            world.add_invented(before + step * ((k + 0.5) / posts))
        for k in range(answers):
            self._add_late_answer(before + step * ((k + 0.5) / answers))
        world._at += step
        world.advance()
        now = {post.number: len(post.answers) for post in world.newest()}
        changed = [number for number, count in counts.items() if now[number] > count]
        return {"now": world.now().isoformat(), "new": sorted(now.keys() - counts.keys()), "changed": sorted(changed)}

    def _add_late_answer(self, at: datetime) -> None:
        post = random.Random(f"late\x1f{self._n_late}").choice(self.server.world.newest()[:_RECENT])
        self._n_late += 1
        self.server.world._push(at, post, invent_answer(0, -self._n_late, 0, at))

    def challenge(self, kind: str = "arg1", *, after: int = 0) -> None:
        """Every page becomes a challenge page, after `after` more pages."""
        self.server.trouble.challenge, self.server.trouble.challenge_after = kind, after

    def slow(self, seconds: float) -> None:
        """Every page comes late."""
        self.server.trouble.slow_seconds = seconds

    def broken(self, rate: float) -> None:
        """A share `rate` of the answers is an error of the server, cut, or breaks off."""
        self.server.trouble.broken_rate = rate

    def hostile(self, mb: int = 50) -> None:
        """Links to hostile pages stand on top of Xinli001's first list page."""
        self.server.trouble.hostile, self.server.trouble.hostile_mb = True, mb

    def layout(self, layout: str) -> None:
        """Changes the layout of Xinli001."""
        self.server.layout = layout

    def robots(self, crawl_delay: float = 0, disallow: str = "") -> None:
        """Changes robots.txt: a Crawl-delay in seconds, and more forbidden paths, separated by commas."""
        self.server.crawl_delay, self.server.disallow = crawl_delay, [path for path in disallow.split(",") if path]

    def reset(self) -> None:
        """Switches all troubles off."""
        self.server.trouble = Troubles()


_POST_IDS: dict[str, Callable[[Post], int]] = {
    "xinli001": xinli001.qid, "discuz": discuz.tid, "discourse": discourse.topic_id, "nodebb": nodebb.tid,
    "douban": douban.topic_id,
}  # fmt: skip
_ANSWER_IDS: dict[str, Callable[[Answer], int]] = {
    "xinli001": xinli001.aid, "discuz": discuz.pid, "discourse": discourse.post_id, "nodebb": nodebb.pid,
    "douban": douban.comment_id,
}  # fmt: skip


def _truth(post: Post) -> dict[str, Any]:
    """A post as it is, with its ids on every site."""
    return {
        **{name: getattr(post, name) for name in ("number", "title", "description", "topic", "subtopics", "notice")},
        "ids": {engine: str(id_of(post)) for engine, id_of in _POST_IDS.items()},
        "board": str(discuz.board_of(post)),
        "posted_at": post.posted_at.isoformat(),
        "answers": [
            {
                **{name: getattr(answer, name) for name in ("text", "author_role", "likes", "recommended")},
                "ids": {engine: str(id_of(answer)) for engine, id_of in _ANSWER_IDS.items()},
                "posted_at": answer.posted_at.isoformat(),
                "hidden_in_forums": hidden(answer),
            }
            for answer in post.answers
        ],
    }


def _links() -> list[str]:
    outside = [f"{ELSEWHERE}/qa/{FIRST_QID}", "file:///etc/hostname", "data:text/html,x", "javascript:void(0)"]
    return outside + [f"/qa/{_FIRST_HOSTILE + k}" for k in range(len(HOSTILE))]


def _row_link(href: str) -> str:
    return (
        f'<li>\n<p class="title"><span><a class="common-a" target="_blank" href="{href}">\n 虚构的链接\n</a>'
        '</span></p>\n<p class="label"><span>回答 0 · 有用 0   刚刚</span></p></li>\n'
    )


async def _broken(request: web.Request, page: Page, kind: str) -> web.StreamResponse:
    if kind == "500":
        return response_of(html_page("<html><body>500</body></html>", 500))
    # Never before the head is over: what is lost is content.
    half = page.body[: max(1, len(page.body) * 2 // 3)]
    if kind == "cut":
        return response_of(Page(half, page.content_type, page.status))
    response = web.StreamResponse(headers={"Content-Type": page.content_type, "Content-Length": str(len(page.body))})
    await response.prepare(request)
    await response.write(half)
    if request.transport is not None:
        request.transport.close()
    return response


def challenge_page(kind: str) -> Page:
    """What a wall against crawlers sends instead of a page."""
    if kind == "503":
        return Page(b"", status=302, headers={"Location": "/503-error.html"})
    if kind == "captcha":
        return Page(b"", status=302, headers={"Location": "http://wappass.example.com/static/captcha/tuxing.html"})
    if kind in ("403", "429"):
        return html_page(f"<html><body>{NOTE}<h1>{kind}</h1></body></html>", int(kind))
    if kind == "empty":
        empty = '<div id="main"><div id="left"><ul class="content"></ul></div></div>'
        return html_page(f'<html><head><meta charset="utf-8"></head><body>{NOTE}{empty}</body></html>')
    # Shaped like Alibaba Cloud's; the script is ours and solves nothing.
    return html_page(
        f"<html><head>{NOTE}<script>var arg1='5B9C0F1E2D3A4B5C6D7E8F90A1B2C3D4E5F60718';"
        "document.cookie='acw_sc__v2=replica;path=/';document.location.reload();</script></head><body></body></html>"
    )


async def hostile_response(request: web.Request, kind: str, megabytes: int) -> web.StreamResponse:
    """A page that a crawler has to refuse, count, and survive in bounded memory."""
    if kind == "loop":
        turn = "b" if request.query.get("turn") == "a" else "a"
        raise web.HTTPFound(f"{request.path}?turn={turn}")
    if kind == "redirect-offsite":
        raise web.HTTPFound(f"{ELSEWHERE}/qa/{FIRST_QID}")
    if kind == "redirect-file":
        return web.Response(status=302, headers={"Location": "file:///etc/hostname"})
    if kind == "bomb":
        return web.Response(
            body=await asyncio.to_thread(_bomb, megabytes * 4),
            headers={"Content-Encoding": "gzip"},
            content_type="text/html",
        )
    if kind == "entity":
        return web.Response(body=_ENTITIES.encode(), content_type="application/xhtml+xml", charset="utf-8")
    if kind == "deep":
        return web.Response(text="<div>" * 100_000 + NOTE, content_type="text/html")
    if kind == "endless":
        step = whole_number(request.query.get("page")) + 1
        text = f'<ul class="pagination"><li><a href="{request.path}?page={step}" rel="next">»</a></li></ul>'
        return web.Response(text=f"<html><body>{NOTE}{text}</body></html>", content_type="text/html")
    return await _big(request, megabytes)


async def _big(request: web.Request, megabytes: int) -> web.StreamResponse:
    """So many megabytes of HTML in chunks: no Content-Length warns of it."""
    response = web.StreamResponse()
    response.content_type = "text/html"
    response.enable_chunked_encoding()
    await response.prepare(request)
    block = b"<p>replica</p>" * (_MEGABYTE // 14)
    await response.write(f"<html><body>{NOTE}".encode())
    for _ in range(megabytes):
        await response.write(block)
    await response.write_eof(b"</body></html>")
    return response


def _bomb(megabytes: int) -> bytes:
    """So many megabytes of one letter, gzipped: a thousandth of that on the wire."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b"a" * _MEGABYTE
    return b"".join(
        [squeeze.compress(b"<html><body>"), *(squeeze.compress(block) for _ in range(megabytes)), squeeze.flush()]
    )


_ENTITIES = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html [\n<!ENTITY host SYSTEM "file:///etc/hostname">\n'
    '<!ENTITY a "共情共情共情共情共情共情共情共情共情共情">\n'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">\n' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + ']>\n<html xmlns="http://www.w3.org/1999/xhtml"><body><div id="left"><div class="content"><div class="title">'
    "<h1>&host;&i;</h1></div></div></div></body></html>"
)
