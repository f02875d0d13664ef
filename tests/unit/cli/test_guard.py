"""The guard: whom it lets through to the app behind it, and what it says to everybody else. No browser, no Dagster."""

import asyncio
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


def asked(app: App, method: str = "GET", target: str = "/assets", port: int = PORT, **headers: str | None) -> Sent:
    """What comes back. The operator's own request, but for `headers`: None takes one away; `_` stands for `-`."""
    path, _, query = target.partition("?")
    given: dict[str, str | None] = {"host": f"127.0.0.1:{port}", "cookie": COOKIE} | headers
    scope = {
        "type": "websocket" if method == "WEBSOCKET" else "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [
            (name.replace("_", "-").encode(), value.encode("latin-1"))
            for name, value in given.items()
            if value is not None
        ],
    }
    sent: Sent = []

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    guard = Guard(app, names=("127.0.0.1", "localhost", "[::1]"), port=port, token=TOKEN, post_only=("/graphql",))
    asyncio.run(guard(scope, receive, send))
    return sent


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


@pytest.mark.parametrize("site", ["same-origin", "none", None])
def test_the_operators_window_reads(app, site):
    assert status(asked(app, sec_fetch_site=site)) == 200
    assert app.asked == ["/assets"]


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_the_operators_window_writes_under_each_of_our_names(app, name):
    host = f"{name}:{PORT}"
    assert (
        status(asked(app, "POST", "/graphql", host=host, origin=f"http://{host}", sec_fetch_site="same-origin")) == 200
    )


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
    async def nothing(*_: Any) -> None: ...

    asyncio.run(Guard(app, names=(), port=PORT, token=TOKEN)({"type": "lifespan"}, nothing, nothing))
    assert app.asked == ["lifespan"]


# --- whoever has no token


@pytest.mark.parametrize(
    "cookie",
    [
        None,
        "",
        f"gongqing-{PORT}=",
        f"gongqing-{PORT}={TOKEN[:-1]}",
        f"gongqing-{PORT}={TOKEN}x",
        f"gongqing-{PORT}=ÿ",
        f"gongqing-{PORT + 1}={TOKEN}",  # of another one's, on another port of this machine
        f"token={TOKEN}",
    ],
)
def test_without_the_cookie_there_is_a_hint_and_nothing_else(app, cookie):
    sent = asked(app, cookie=cookie)
    assert refused(app, sent) == 401
    assert b"open the address that `gongqing ui` has printed" in sent[1]["body"]


@pytest.mark.parametrize("target", ["/?token=", "/?token=nearly", f"/?token={TOKEN}&token=x", f"/runs?token={TOKEN}"])
def test_another_token_or_another_place_for_it_opens_nothing(app, target):
    assert refused(app, asked(app, target=target, cookie=None)) == 401


def test_a_websocket_needs_the_cookie(app):
    [closed] = asked(app, "WEBSOCKET", "/graphql", origin=ORIGIN, cookie=None)
    assert (closed["type"], app.asked) == ("websocket.close", [])


def test_a_cookie_is_found_among_others(app):
    assert status(asked(app, cookie=f"a=b; {COOKIE};c")) == 200


# --- pages of others, with the operator's cookie


@pytest.mark.drill("web UI")
@pytest.mark.parametrize(
    "host", [f"rebind.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"127.0.0.1:{PORT}.example", "", None]
)
def test_a_name_that_is_not_ours_is_refused_with_cookie_and_token(app, host):
    assert refused(app, asked(app, host=host)) == 403
    assert refused(app, asked(app, host=host, target=f"/?token={TOKEN}")) == 403


@pytest.mark.drill("web UI")
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "DELETE"])
@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", f"http://127.0.0.1:{PORT + 1}", f"http://localhost:{PORT}", f"https://{HOST}", "null", ""],
)
def test_another_origin_is_refused_whatever_it_asks(app, method, origin):
    assert refused(app, asked(app, method, "/graphql", origin=origin)) == 403


@pytest.mark.drill("web UI")
@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "anything"])
def test_what_another_page_has_caused_is_refused(app, site):
    """An image, a frame, a link: a browser names no origin, and says where it came from."""
    assert refused(app, asked(app, sec_fetch_site=site)) == 403
    assert refused(app, asked(app, sec_fetch_site=site, target=f"/?token={TOKEN}")) == 403


@pytest.mark.drill("web UI")
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_what_changes_something_says_where_it_came_from(app, method):
    assert refused(app, asked(app, method, "/report_asset_check/a")) == 403
    assert refused(app, asked(app, method, "/report_asset_check/a", sec_fetch_site="none")) == 403
    assert refused(app, asked(app, method, "/report_asset_check/a", sec_fetch_site="same-origin")) == 403


@pytest.mark.drill("web UI")
@pytest.mark.parametrize("origin", [None, "http://evil.example", f"http://localhost:{PORT}", "null"])
def test_a_websocket_of_another_page_is_refused(app, origin):
    [closed] = asked(app, "WEBSOCKET", "/graphql", origin=origin)
    assert (closed["type"], app.asked) == ("websocket.close", [])


@pytest.mark.drill("web UI")
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/graphql", "/graphql/", "//graphql", "/GraphQL"])
def test_graphql_is_not_asked_by_get_even_by_the_operator(app, method, path):
    sent = asked(app, method, f"{path}?query=mutation", sec_fetch_site="same-origin")
    assert refused(app, sent) == 405
    assert headers(sent)["allow"] == "POST"


# --- what is said of an answer


def test_an_answer_may_be_framed_by_nobody_and_sends_nothing_elsewhere(app):
    sent = asked(app)
    policies = [value.decode() for name, value in sent[0]["headers"] if name.lower() == b"content-security-policy"]
    assert policies[0] == "object-src 'none'"  # the app's own holds as well
    assert "frame-ancestors 'none'" in policies[1]
    assert f"connect-src 'self' ws://{HOST}" in policies[1]
    said = headers(sent)
    assert (said["x-frame-options"], said["x-content-type-options"]) == ("DENY", "nosniff")
    assert said["referrer-policy"] == "same-origin"
    assert said["cross-origin-resource-policy"] == "same-origin"


def test_two_names_at_once_are_none(app):
    async def nothing(*_: Any) -> None: ...

    sent: Sent = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "GET", "path": "/", "query_string": b"",
        "headers": [(b"host", HOST.encode()), (b"host", b"evil.example"), (b"cookie", COOKIE.encode())],
    }  # fmt: skip
    asyncio.run(Guard(app, names=("127.0.0.1",), port=PORT, token=TOKEN)(scope, nothing, send))
    assert refused(app, sent) == 403
