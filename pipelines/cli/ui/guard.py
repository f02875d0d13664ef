"""Lets the operator's own browser through to a web app on this machine, and no page of anybody else's.

A browser sends requests for every page that it shows, no matter who wrote the page, and adds the cookies of the site
that is asked. So a request comes through only if all of this is so:

* It names this server (`Host`). A page whose own name was pointed at this machine (DNS rebinding) names itself.
* It was made by our own page, or by a person who opened an address: `Origin` and `Sec-Fetch-Site` say so. A request
  that changes something, or opens a WebSocket, must bring our `Origin`. One host is one site to a browser, whatever
  the port, so `same-site` is refused as `cross-site` is.
* It has the cookie that the address with the token has left, under a name with our port in it: cookies know no ports.
* It asks by GET for nothing that is for POST alone.

Another program on a loopback address is sent the cookie too, if the operator opens it in the same browser. A program
that can put one there is a user of this machine; a home is no place to share with those.
"""

import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN = "token"  # noqa: S105 - the name of a parameter  # in the query of the address that is opened
_READS = frozenset({"GET", "HEAD"})


class Guard:
    """An ASGI app around another one.

    The server goes by `origins`, as a browser writes them (`http://127.0.0.1:3000`, `https://data.example`); `port`
    gives the cookie its name. The token in the address becomes the cookie. The paths `post_only` answer to POST and
    WebSockets alone.
    """

    def __init__(
        self, app: App, *, origins: Iterable[str], port: int, token: str, post_only: Iterable[str] = ()
    ) -> None:
        self._app = app
        self._origins = {origin.partition("://")[2]: origin for origin in map(str.lower, origins)}  # by `Host`
        self._cookie = f"gongqing-{port}"
        self._token = token.encode()
        self._post_only = {_plain(path) for path in post_only}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Called by the server, for every connection."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] not in {"http", "websocket"}:
            return
        headers = _headers(scope)
        status, reason = self._refusal(scope, headers)
        if status == 0 and scope["type"] == "http" and self._brings_token(scope):
            await self._open(send, self._origins[headers["host"][0].lower()])
        elif status == 0:
            status, reason = self._refusal_without_cookie(headers)
            if status == 0:
                await self._app(scope, receive, _with_headers(send, self._origins[headers["host"][0].lower()]))
        if status:
            await _refuse(scope, send, status, reason)

    def _refusal(self, scope: Scope, headers: dict[str, list[str]]) -> tuple[int, str]:
        """Why a request is refused, no matter who makes it; (0, "") where it is not."""
        hosts, origins, sites = (headers.get(name, []) for name in ("host", "origin", "sec-fetch-site"))
        if len(hosts) != 1 or hosts[0].lower() not in self._origins:
            return 403, "this server goes by another name"
        ours = [origin.lower() for origin in origins] == [self._origins[hosts[0].lower()]]
        if origins and not ours:
            return 403, "this came from a page of somebody else's"
        reads = scope["type"] == "http" and scope["method"] in _READS
        if sites and sites != ["same-origin"] and not (sites == ["none"] and reads):
            return 403, "this came from a page of somebody else's; open the address by itself"
        if not reads and not ours:
            return 403, "this does not say that it came from a page of ours"
        if scope["type"] == "http" and scope["method"] != "POST" and _plain(scope["path"]) in self._post_only:
            return 405, "this answers to POST alone"
        return 0, ""

    def _brings_token(self, scope: Scope) -> bool:
        """Whether it is the address that was printed, with the right token."""
        if scope["path"] != "/" or scope["method"] not in _READS:
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get(TOKEN, [])
        return len(given) == 1 and self._is_token(given[0])

    def _refusal_without_cookie(self, headers: dict[str, list[str]]) -> tuple[int, str]:
        pairs = [pair.partition("=") for line in headers.get("cookie", []) for pair in line.split(";")]
        if any(name.strip() == self._cookie and self._is_token(value.strip()) for name, _, value in pairs):
            return 0, ""
        return 401, "open the address that `gongqing ui` has printed: the whole of it, with its token"

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    async def _open(self, send: Send, origin: str) -> None:
        cookie = f"{self._cookie}={self._token.decode()}; Path=/; HttpOnly; SameSite=Strict"
        if origin.startswith("https:"):
            cookie += "; Secure"
        headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), *_PLAIN]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


# Of every answer of ours.
_PLAIN = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
]


async def _refuse(scope: Scope, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})  # before it was accepted: the server answers 403
        return
    body = f"gongqing: {reason}\n".encode()
    headers = [*_PLAIN, (b"content-length", str(len(body)).encode())]
    if status == 405:
        headers.append((b"allow", b"POST"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _with_headers(send: Send, origin: str) -> Send:
    """Answers of the app, with the headers that keep its pages apart from others': no frame, no referrer elsewhere, and
    nothing sent or fetched but here. A policy of the app's own holds beside this one.
    """
    socket = origin.replace("http", "ws", 1)
    policy = (
        f"frame-ancestors 'none'; form-action 'self'; img-src 'self' data: blob:; connect-src 'self' {socket}"
    ).encode()
    added = {
        b"x-frame-options": b"DENY",
        b"x-content-type-options": b"nosniff",
        b"referrer-policy": b"same-origin",
        b"cross-origin-opener-policy": b"same-origin",
        b"cross-origin-resource-policy": b"same-origin",
    }

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message.get("headers", []) if name.lower() not in added]
            message = {**message, "headers": [*kept, *added.items(), (b"content-security-policy", policy)]}
        await send(message)

    return sent


def _headers(scope: Scope) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return values


def _plain(path: str) -> str:
    return "/" + "/".join(part for part in path.lower().split("/") if part)
