"""The guard: whom it lets through to the app behind it, and what it says to everybody else. No browser, no Dagster."""

import asyncio
from itertools import product
from typing import Any

import pytest

from pipelines.cli.ui.guard import Guard

PORT = 13000
TOKEN = "what_nobody_guesses-0123456789012345678901"
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"
COOKIE = f"gongqing-{PORT}={TOKEN}"
PROXY = "data.example"


class App:
    """Answers all, and remembers the paths."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.paths.append(scope.get("path", scope["type"]))
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
        elif scope["type"] == "http":
            own = [(b"Content-Security-Policy", b"object-src 'none'"), (b"Referrer-Policy", b"unsafe-url")]
            await send({"type": "http.response.start", "status": 200, "headers": own})
            await send({"type": "http.response.body", "body": b"texts"})


@pytest.fixture
def app() -> App:
    return App()


def guarded(app: App, scope: dict[str, Any], port: int = PORT) -> list[Any]:
    """What the guard sends to a connection."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    own = (f"http://{name}:{port}".removesuffix(":80") for name in ("127.0.0.1", "localhost", "[::1]"))
    guard = Guard(app, origins=(*own, f"https://{PROXY}"), port=port, token=TOKEN, post_only=("/graphql",))
    asyncio.run(guard(scope, lambda: None, send))
    return sent


def asked(app: App, method: str = "GET", target: str = "/assets", port: int = PORT, **headers: Any) -> list[Any]:
    """What comes back. The operator's own request, but for `headers`: None takes one away; `_` stands for `-`."""
    path, _, query = target.partition("?")
    lines = {"host": [f"127.0.0.1:{port}"], "cookie": [COOKIE]}
    lines |= {name: value if isinstance(value, list) else [value] for name, value in headers.items()}
    pairs = [(name.replace("_", "-"), value) for name, values in lines.items() for value in values if value is not None]
    scope = {"type": "websocket" if method == "WEBSOCKET" else "http", "method": method, "path": path}
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in pairs]
    return guarded(app, scope | {"query_string": query.encode(), "headers": encoded}, port)


def status(sent: list[Any]) -> int:
    return sent[0]["status"]


def headers(sent: list[Any]) -> dict[str, str]:
    return {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}


def refused(app: App, sent: list[Any]) -> int:
    """With which status; the app was not asked, and nothing of the token was said."""
    assert not app.paths
    assert TOKEN.encode() not in b"".join(message.get("body", b"") for message in sent)
    assert "set-cookie" not in headers(sent)
    return status(sent)


def test_the_operators_window_reads_and_writes_under_each_of_our_names(app):
    for site in ("same-origin", "none", None):
        assert status(asked(app, sec_fetch_site=site)) == 200
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        host = f"{name}:{PORT}"
        sent = asked(app, "POST", "/graphql", host=host, origin=f"http://{host}", sec_fetch_site="same-origin")
        assert status(sent) == 200
    [accepted] = asked(app, "WEBSOCKET", "/graphql", origin=ORIGIN)
    assert accepted["type"] == "websocket.accept"
    guarded(app, {"type": "lifespan"})  # the start and the end of the server
    assert app.paths == ["/assets"] * 3 + ["/graphql"] * 5 + ["lifespan"]


def test_the_address_that_was_printed_leaves_the_cookie_and_loses_its_token(app):
    sent = asked(app, target=f"/?token={TOKEN}", cookie=None, sec_fetch_site="none")
    assert (status(sent), headers(sent)["location"]) == (303, "/")
    assert headers(sent)["set-cookie"] == f"{COOKIE}; Path=/; HttpOnly; SameSite=Strict"
    assert headers(sent)["cache-control"] == "no-store"
    assert headers(sent)["referrer-policy"] == "no-referrer"
    assert not app.paths


def test_behind_a_proxy_it_goes_by_the_name_of_that_one_and_all_is_encrypted(app):
    opened = asked(app, target=f"/?token={TOKEN}", cookie=None, host=PROXY, sec_fetch_site="none")
    assert headers(opened)["set-cookie"] == f"{COOKIE}; Path=/; HttpOnly; SameSite=Strict; Secure"
    sent = asked(app, "POST", "/graphql", host=PROXY, origin=f"https://{PROXY}", sec_fetch_site="same-origin")
    assert status(sent) == 200
    assert f"connect-src 'self' wss://{PROXY}" in headers(sent)["content-security-policy"]
    app.paths.clear()
    for origin in (f"http://{PROXY}", ORIGIN, f"https://{PROXY}:444"):
        assert refused(app, asked(app, "POST", "/graphql", host=PROXY, origin=origin)) == 403


def test_on_port_80_a_browser_names_no_port_and_a_cookie_is_found_among_others(app):
    assert status(asked(app, port=80, host="localhost", cookie=f"a=b; gongqing-80={TOKEN};c")) == 200


def test_without_the_cookie_there_is_a_hint_and_nothing_else(app):
    name = f"gongqing-{PORT}"
    another = f"gongqing-{PORT + 1}={TOKEN}"  # of another one's, on another port of this machine
    wrong = [None, "", f"{name}=", f"{name}={TOKEN[:-1]}", f"{name}={TOKEN}x", f"{name}=ÿ", another, f"token={TOKEN}"]
    for cookie in wrong:
        sent = asked(app, cookie=cookie)
        assert refused(app, sent) == 401, cookie
        assert b"open the address that `gongqing ui` has printed" in sent[1]["body"]
    for target in ("/?token=", "/?token=nearly", f"/?token={TOKEN}&token=x", f"/runs?token={TOKEN}"):
        assert refused(app, asked(app, target=target, cookie=None)) == 401, target


@pytest.mark.drill("web UI")
def test_a_name_that_is_not_ours_another_origin_and_what_another_page_has_caused_are_refused(app):
    """An image, a frame, a link: a browser names no origin, and says where it came from, as what writes must."""
    names = ("127.0.0.1", f"127.0.0.1:{PORT + 1}", f"127.0.0.1:{PORT}.example", "", None, [HOST, "evil.example"])
    ours = (f"http://127.0.0.1:{PORT + 1}", f"http://localhost:{PORT}", f"https://{HOST}")  # nearly
    origins, sites = ("http://evil.example", *ours, "null", ""), ("cross-site", "same-site", "", "anything")
    for method, target, name, values in (
        *(("GET", target, "host", (f"rebind.example:{PORT}", *names)) for target in ("/assets", f"/?token={TOKEN}")),
        *((method, "/graphql", "origin", origins) for method in ("GET", "HEAD", "POST", "OPTIONS", "DELETE")),
        *(("GET", target, "sec_fetch_site", sites) for target in ("/assets", f"/?token={TOKEN}")),
        *((method, "/a", "sec_fetch_site", (None, "none", "same-origin")) for method in ("POST", "DELETE", "OPTIONS")),
    ):
        for value in values:
            assert refused(app, asked(app, method, target, **{name: value})) == 403, (method, target, name, value)


@pytest.mark.drill("web UI")
def test_a_websocket_needs_the_cookie_and_our_origin(app):
    others = (None, "http://evil.example", f"http://localhost:{PORT}", "null")
    for cookie, origin in ((None, ORIGIN), *((COOKIE, other) for other in others)):
        [closed] = asked(app, "WEBSOCKET", "/graphql", origin=origin, cookie=cookie)
        assert (closed["type"], app.paths) == ("websocket.close", []), origin


@pytest.mark.drill("web UI")
def test_graphql_is_not_asked_by_get_even_by_the_operator(app):
    for method, path in product(("GET", "HEAD"), ("/graphql", "/graphql/", "//graphql", "/GraphQL")):
        sent = asked(app, method, f"{path}?query=mutation", sec_fetch_site="same-origin")
        assert refused(app, sent) == 405, (method, path)
        assert headers(sent)["allow"] == "POST"


def test_an_answer_may_be_framed_by_nobody_and_sends_nothing_elsewhere(app):
    sent = asked(app)
    policies = [value.decode() for name, value in sent[0]["headers"] if name.lower() == b"content-security-policy"]
    assert policies[0] == "object-src 'none'"  # the app's own holds as well
    assert "frame-ancestors 'none'" in policies[1]
    assert f"connect-src 'self' ws://{HOST}" in policies[1]
    shown = headers(sent)
    assert (shown["x-frame-options"], shown["x-content-type-options"]) == ("DENY", "nosniff")
    assert shown["referrer-policy"] == shown["cross-origin-resource-policy"] == "same-origin"
