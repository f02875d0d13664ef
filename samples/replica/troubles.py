"""What goes wrong on purpose: challenges, slowness, broken pages, and pages that mean harm to a crawler."""

import asyncio
import zlib
from dataclasses import dataclass, field, fields

from aiohttp import web

from samples.replica.page import NOTE, Page, html_page, whole_number
from samples.replica.xinli001 import FIRST_QID
from schemas.ids import stable_int, unit_interval

CHALLENGES = ("arg1", "slider", "503", "captcha", "403", "429", "empty")
BROKEN = ("500", "cut", "drop", "mixed")
HOSTILE = ("loop", "bomb", "big", "entity", "redirect-offsite", "redirect-file", "deep", "endless")
ELSEWHERE = "http://other-host.example.com"
# Ids of questions that only hostile pages have: far above all others.
_FIRST_HOSTILE = FIRST_QID + 800_000_000
_MEGABYTE = 1 << 20


@dataclass(slots=True)
class Troubles:
    """The switches. Everything is off at first."""

    seed: int = 0
    challenge: str = ""
    challenge_after: int = 0
    challenge_times: int = -1
    slow_seconds: float = 0
    slow_rate: float = 1
    broken_rate: float = 0
    broken_kind: str = "500"
    hostile: bool = False
    hostile_mb: int = 50
    _asked: dict[str, int] = field(default_factory=dict)

    def clear(self) -> None:
        """Switches everything off."""
        for item in fields(self):
            if item.name not in ("seed", "_asked"):
                setattr(self, item.name, item.default)
        self._asked.clear()

    def take_challenge(self) -> str:
        """The kind of challenge that this page becomes, empty for none; counts down."""
        if not self.challenge:
            return ""
        if self.challenge_after > 0:
            self.challenge_after -= 1
            return ""
        kind = self.challenge
        if self.challenge_times > 0:
            self.challenge_times -= 1
            if self.challenge_times == 0:
                self.challenge, self.challenge_times = "", -1
        return kind

    def take_break(self, path: str) -> str:
        """How this page is broken, empty for not at all. Seeded by path and attempt: asking again may help."""
        if not self.broken_rate:
            return ""
        attempt = self._asked[path] = self._asked.get(path, 0) + 1
        if unit_interval(self.seed, "broken", path, attempt) >= self.broken_rate:
            return ""
        if self.broken_kind != "mixed":
            return self.broken_kind
        return ("500", "cut", "drop")[stable_int(f"{self.seed}\x1f{path}\x1f{attempt}") % 3]

    def delay(self, path: str) -> float:
        """Seconds to wait before this page is sent."""
        if not self.slow_seconds or unit_interval(self.seed, "slow", path) >= self.slow_rate:
            return 0
        return self.slow_seconds

    def links(self) -> list[str]:
        """The links on top of the first list page of Xinli001 while `hostile` is on."""
        if not self.hostile:
            return []
        outside = [
            f"{ELSEWHERE}/qa/{FIRST_QID}",
            "file:///etc/hostname",
            "data:text/html,<h1>x</h1>",
            "javascript:void(0)",
        ]
        return outside + [f"/qa/{_FIRST_HOSTILE + k}" for k in range(len(HOSTILE))]

    def hostile_kind(self, path: str) -> str:
        """Which hostile page stands at `path`, empty for none."""
        if path.startswith("/_replica/hostile/"):
            kind = path.removeprefix("/_replica/hostile/")
            return kind if kind in HOSTILE else ""
        k = whole_number(path.removeprefix("/qa/"), 0) - _FIRST_HOSTILE
        return HOSTILE[k] if self.hostile and 0 <= k < len(HOSTILE) else ""


def challenge_page(kind: str) -> Page:
    """What a wall against crawlers sends instead of a page."""
    if kind == "503":
        return Page(b"", status=302, headers={"Location": "/503-error.html"})
    if kind == "slider":
        where = "/qa/_waf?u_atoken=5b9c0f&u_asession=01a&u_asig=05b&u_aref=c"
        return Page(b"", status=302, headers={"Location": where})
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


def slider_page() -> Page:
    """Where the slider's redirect leads."""
    return html_page(f'<html><body>{NOTE}<div id="nc_1_wrapper" class="nc-container">acw_sc__v3</div></body></html>')


def error_503_page() -> Page:
    """Xinli001's page for overload, which comes with status 200."""
    return html_page(f'<html><head><meta charset="utf-8"><title>503</title></head><body>{NOTE}系统繁忙</body></html>')


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
