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

Sent = list[dict[str, Any]]


class App:
    """Answers all, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append(scope.get("path", scope["type"]))
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
        elif scope["type"] == "http":
            own = [(b"Content-Security-Policy", b"object-src 'none'"), (b"Referrer-Policy", b"unsafe-url")]
            await send({"type": "http.response.start", "status": 200, "headers": own})
            await send({"type": "http.response.body", "body": b"texts"})


@pytest.fixture
def app() -> App:
    return App()


def guarded(app: App, scope: dict[str, Any], port: int = PORT) -> Sent:
    """What the guard sends to a connection."""
    sent: Sent = []

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    guard = Guard(app, names=("127.0.0.1", "localhost", "[::1]"), port=port, token=TOKEN, post_only=("/graphql",))
    asyncio.run(guard(scope, receive, send))
    return sent


def asked(
    app: App, method: str = "GET", target: str = "/assets", port: int = PORT, **headers: str | list[str] | None
) -> Sent:
    """What comes back. The operator's own request, but for `headers`: None takes one away; `_` stands for `-`."""
    path, _, query = target.partition("?")
    lines: dict[str, Any] = {"host": f"127.0.0.1:{port}", "cookie": COOKIE} | headers
    scope = {
        "type": "websocket" if method == "WEBSOCKET" else "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [
            (name.replace("_", "-").encode(), value.encode("latin-1"))
            for name, values in lines.items()
            for value in (values if isinstance(values, list) else [values])
            if value is not None
        ],
    }
    return guarded(app, scope, port)


def status(sent: Sent) -> int:
    return sent[0]["status"]


def headers(sent: Sent) -> dict[str, str]:
    return {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}


def refused(app: App, sent: Sent) -> int:
    """With which status; the app was not asked, and nothing of the token was said."""
    assert not app.asked
    assert TOKEN.encode() not in b"".join(message.get("body", b"") for message in sent)
    assert "set-cookie" not in headers(sent)
    return status(sent)


# --- the operator


def test_the_operators_window_reads_and_writes_under_each_of_our_names(app):
    for site in ("same-origin", "none", None):
        assert status(asked(app, sec_fetch_site=site)) == 200
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        host = f"{name}:{PORT}"
        sent = asked(app, "POST", "/graphql", host=host, origin=f"http://{host}", sec_fetch_site="same-origin")
        assert status(sent) == 200
    assert app.asked == ["/assets"] * 3 + ["/graphql"] * 4


def test_the_operators_window_opens_a_websocket(app):
    [accepted] = asked(app, "WEBSOCKET", "/graphql", origin=ORIGIN)
    assert accepted["type"] == "websocket.accept"


def test_the_address_that_was_printed_leaves_the_cookie_and_loses_its_token(app):
    sent = asked(app, target=f"/?token={TOKEN}", cookie=None, sec_fetch_site="none")
    assert (status(sent), headers(sent)["location"]) == (303, "/")
    assert headers(sent)["set-cookie"] == f"{COOKIE}; Path=/; HttpOnly; SameSite=Strict"
    assert headers(sent)["cache-control"] == "no-store"
    assert headers(sent)["referrer-policy"] == "no-referrer"
    assert not app.asked


def test_on_port_80_a_browser_names_no_port(app):
    assert status(asked(app, port=80, host="localhost", cookie=f"gongqing-80={TOKEN}")) == 200


def test_the_start_and_end_of_the_server_are_handed_on(app):
    guarded(app, {"type": "lifespan"})
    assert app.asked == ["lifespan"]


# --- a request without the token


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


def test_a_cookie_is_found_among_others(app):
    assert status(asked(app, cookie=f"a=b; {COOKIE};c")) == 200


# --- pages of others, with the operator's cookie


@pytest.mark.drill("web UI")
def test_a_name_that_is_not_ours_is_refused_with_cookie_and_token(app):
    names = ("127.0.0.1", f"127.0.0.1:{PORT + 1}", f"127.0.0.1:{PORT}.example", "", None, [HOST, "evil.example"])
    for host in (f"rebind.example:{PORT}", *names):
        assert refused(app, asked(app, host=host)) == 403, host
        assert refused(app, asked(app, host=host, target=f"/?token={TOKEN}")) == 403, host


@pytest.mark.drill("web UI")
def test_another_origin_is_refused_whatever_it_asks(app):
    ours = (f"http://127.0.0.1:{PORT + 1}", f"http://localhost:{PORT}", f"https://{HOST}")  # nearly
    origins, methods = ("http://evil.example", *ours, "null", ""), ("GET", "HEAD", "POST", "OPTIONS", "DELETE")
    for origin, method in product(origins, methods):
        assert refused(app, asked(app, method, "/graphql", origin=origin)) == 403, (origin, method)


@pytest.mark.drill("web UI")
def test_what_another_page_has_caused_is_refused(app):
    """An image, a frame, a link: a browser names no origin, and says where it came from."""
    for site, target in product(("cross-site", "same-site", "", "anything"), ("/assets", f"/?token={TOKEN}")):
        assert refused(app, asked(app, sec_fetch_site=site, target=target)) == 403, (site, target)


@pytest.mark.drill("web UI")
def test_what_changes_something_says_where_it_came_from(app):
    for method, site in product(("POST", "PUT", "DELETE", "OPTIONS"), (None, "none", "same-origin")):
        assert refused(app, asked(app, method, "/report_asset_check/a", sec_fetch_site=site)) == 403, (method, site)


@pytest.mark.drill("web UI")
def test_a_websocket_needs_the_cookie_and_our_origin(app):
    others = (None, "http://evil.example", f"http://localhost:{PORT}", "null")
    for cookie, origin in ((None, ORIGIN), *((COOKIE, other) for other in others)):
        [closed] = asked(app, "WEBSOCKET", "/graphql", origin=origin, cookie=cookie)
        assert (closed["type"], app.asked) == ("websocket.close", []), origin


@pytest.mark.drill("web UI")
def test_graphql_is_not_asked_by_get_even_by_the_operator(app):
    for method, path in product(("GET", "HEAD"), ("/graphql", "/graphql/", "//graphql", "/GraphQL")):
        sent = asked(app, method, f"{path}?query=mutation", sec_fetch_site="same-origin")
        assert refused(app, sent) == 405, (method, path)
        assert headers(sent)["allow"] == "POST"


# --- what is said of an answer


def test_an_answer_may_be_framed_by_nobody_and_sends_nothing_elsewhere(app):
    sent = asked(app)
    policies = [value.decode() for name, value in sent[0]["headers"] if name.lower() == b"content-security-policy"]
    assert policies[0] == "object-src 'none'"  # the app's own holds as well
    assert "frame-ancestors 'none'" in policies[1]
    assert f"connect-src 'self' ws://{HOST}" in policies[1]
    shown = headers(sent)
    assert (shown["x-frame-options"], shown["x-content-type-options"]) == ("DENY", "nosniff")
    assert shown["referrer-policy"] == shown["cross-origin-resource-policy"] == "same-origin"
