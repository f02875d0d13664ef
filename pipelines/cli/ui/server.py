"""Serves Dagster's web UI of a home, on one port, to its operator alone.

This process is the web server. The code location and the daemon are processes beside it (`pipelines.cli.ui.group`); the
code location listens on a socket in a private folder.
"""

import asyncio
import contextlib
import ipaddress
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipelines.cli.ui.group import Group, together
from pipelines.cli.ui.guard import TOKEN, Guard
from pipelines.core.home import Home
from pipelines.errors import Busy, GongqingError, RequestError
from pipelines.settings import ROOT

MODULE = "pipelines.definitions"
GRAPHQL = "/graphql"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_SECONDS = 1.0  # between two looks at whether the others are at work
_POLL_RATE = 2000  # milliseconds between two looks of the page at its assets, as `dagster dev` has it
_PATIENCE = 3  # seconds that open connections have to end


def serve(home: Path, host: str, port: int, show: Callable[[str], None], *, behind: str | None = None) -> None:
    """Serves the web UI of a home until it is interrupted: by SIGINT, SIGTERM or SIGHUP; never without a token.

    `host` is the one address to listen on, as it stands in the browser; `behind` the address of a reverse proxy in
    front, `https://NAME`, which passes `Host` and `Origin` on. `show` shows the address to open, with its token, once
    it can be opened; and before, what is to be feared.

    Raises RequestError for an address that cannot be listened on, or is none; Busy where it is served already;
    GongqingError where one of the processes beside it ends before its time.
    """
    proxy = None if behind is None else _origin(behind)
    try:
        with (
            _signals_handled(signal.default_int_handler),
            _listening(host, port) as listening,
            _alone(home, host, port),
        ):
            if not _is_loopback(listening):
                show(
                    f"{host} can be reached from other machines. Anyone who reads along on the way has the token, and"
                    " with it every text of this home and its budget, for nothing is encrypted. Better: listen on"
                    f" 127.0.0.1, and from the other machine ssh -L {port}:127.0.0.1:{port}"
                )
            _serve(home, host, port, listening, show, proxy)
    except KeyboardInterrupt:
        return


def _serve(
    home: Path, host: str, port: int, listening: socket.socket, show: Callable[[str], None], proxy: str | None
) -> None:
    from dagster._core.workspace.context import WorkspaceProcessContext
    from dagster._core.workspace.load_target import WorkspaceFileTarget
    from dagster._grpc.client import DagsterGrpcClient
    from dagster._grpc.server import wait_for_grpc_server
    from dagster_webserver.app import create_app_from_workspace_process_context
    from dagster_webserver.version import __version__

    from pipelines.defs.instance import instance

    environment = _environment(home)
    os.environ |= environment
    token = secrets.token_urlsafe(32)
    with instance(home) as standing, together(environment) as group:
        at = str(group.folder / "code")
        named = ["--module-name", MODULE, "--working-directory", str(ROOT), "--location-name", ROOT.name]
        api = [sys.executable, "-m", "dagster", "api", "grpc", "--socket", at, *named, "--log-level", "warning"]
        started = group.start("the code location", api)
        try:
            wait_for_grpc_server(
                started, DagsterGrpcClient(socket=at), [MODULE], timeout=standing.code_server_process_startup_timeout
            )
        except Exception as error:
            raise GongqingError(
                "the code location did not start", where=MODULE, hint="mend the error above, and start it again"
            ) from error
        file = str(group.folder / "workspace.yaml")
        place = {"host": "localhost", "socket": at, "location_name": ROOT.name}
        Path(file).write_text(json.dumps({"load_from": [{"grpc_server": place}]}), encoding="utf-8")
        daemon = [sys.executable, "-m", "dagster._daemon", "run", "--workspace", file, "--log-level", "info"]
        group.start("the daemon", daemon)  # what runs schedules, and what waits for its turn
        with WorkspaceProcessContext(standing, WorkspaceFileTarget([file]), version=__version__) as workspace:
            names = [_in_address(host), *(LOOPBACK if _is_loopback(listening) else ())]
            own, *others = (f"http://{name}:{port}".removesuffix(":80") for name in names)  # as a browser leaves it out
            app = Guard(
                create_app_from_workspace_process_context(workspace, live_data_poll_rate=_POLL_RATE),
                origins=[own, *others, *([proxy] if proxy else ())],
                port=port,
                token=token,
                post_only=[GRAPHQL],
            )
            address = f"{proxy or own}/?{TOKEN}={token}"
            if ended := asyncio.run(_until_over(app, listening, group, lambda: show(address))):
                raise GongqingError(
                    f"the web UI has ended, for {ended}", hint="see above why, then run the same command again"
                )


async def _until_over(app: Any, listening: socket.socket, group: Group, ready: Callable[[], None]) -> str | None:
    """Serves until it is interrupted, or until one of the group has ended: which, and how."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """A signal ends it in order, and is not raised a second time when it has ended, as uvicorn's own is."""
            with _signals_handled(self.handle_exit):
                yield

    server = Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,  # the token stands in an address
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_PATIENCE,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    shown = False
    while not serving.done():
        if (ended := group.ended()) is not None:
            server.should_exit = True
            await serving
            return ended
        if server.started and not shown:
            shown = True
            ready()
        await asyncio.wait([serving], timeout=_SECONDS if shown else 0.05)
    await serving
    return None


def _environment(home: Path) -> dict[str, str]:
    """Of the processes beside: what stands in the repository's .env is there too, behind the environment."""
    from dotenv import dotenv_values

    kept = {name: value for name, value in dotenv_values(ROOT / ".env").items() if value is not None}
    # As short as may be: seconds that the code location waits for its clients, when all are to end.
    patience = {"DAGSTER_GRPC_SHUTDOWN_GRACE_PERIOD": "1"}
    return {**kept, **patience, **os.environ, "DAGSTER_HOME": str(home), "GONGQING_HOME": str(home)}


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket on one address. Raises RequestError where there is none to be had."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        if ipaddress.ip_address(address[0]).is_unspecified:
            raise RequestError(
                f"{host} is every address of this machine, and no name that a browser could call it by",
                hint="name the one address that is to be opened: --host ADDRESS",
            )
        with socket.socket(family, kind) as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            yield listening
    except OSError as error:
        raise RequestError(
            f"{host}, port {port}, cannot be listened on: {error.strerror or error}",
            hint="name another one with --port or --host, or end what listens there",
        ) from error


@contextlib.contextmanager
def _alone(home: Path, host: str, port: int) -> Iterator[None]:
    """Nobody else serves this home meanwhile. Raises Busy."""
    path = Home(home).lock_file("ui")
    with contextlib.ExitStack() as opened:
        try:
            lock = opened.enter_context(Home(home).lock("ui", wait=False))
        except BlockingIOError:
            raise Busy(
                f"the web UI of this home is served already ({path.read_text(encoding='utf-8').strip()})",
                where=home,
                hint="open the address that it has printed, or end it",
            ) from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()}, {host} port {port}\n")
        lock.flush()
        yield


def _is_loopback(listening: socket.socket) -> bool:
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


def _origin(address: str) -> str:
    """Of a reverse proxy, as a browser writes it. Raises RequestError where it is none, or nothing is encrypted."""
    parts = urlsplit(address)
    if parts.scheme != "https" or not parts.hostname or parts.path.strip("/") or parts.query or "@" in parts.netloc:
        raise RequestError(
            f"{address} is no address of a reverse proxy",
            hint="its scheme and name alone: --behind https://data.example",
        )
    return f"https://{parts.netloc}".lower().removesuffix(":443")


def _in_address(host: str) -> str:
    """A host as it stands in an address: of version 6 in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


@contextlib.contextmanager
def _signals_handled(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Signals that end a command go to `handler` in the block: SIGINT, SIGTERM, SIGHUP. SIGINT also where a shell has
    it ignored, as for what it starts in the background: the processes that are started here would ignore it too, and
    end by force alone.
    """
    ends = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        ends.append(signal.SIGHUP)
    before = {number: signal.signal(number, handler) for number in ends}
    try:
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)
