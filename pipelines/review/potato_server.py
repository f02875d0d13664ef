"""The servers of Potato, one a project, on 127.0.0.1: `make review`, until Ctrl-C.

Whoever works from elsewhere comes through the operator's own tunnel or web server. Potato itself is a process of
`.venv-review`.
"""

import argparse
import contextlib
import http.cookiejar
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from pipelines.core.files import held
from pipelines.core.service import end_session
from pipelines.errors import Busy, GongqingError, RequestError
from pipelines.review.potato import PASSWORDS, SERVING, folder_of, passwords_of, prepare, projects_of, usernames_of
from pipelines.review.potato_page import CONFIG, ITEMS
from pipelines.settings import ROOT, home

PROGRAM = ROOT / ".venv-review" / "bin" / "potato"
HOST, PORT = "127.0.0.1", 8320  # of the first project; the next has the next
LOG = "server.log"
_START_SECONDS, _STOP_SECONDS = 120, 10
_LOOK_AGAIN = 1.0  # seconds between two looks at what was pushed
_LAST_WORDS = 2000  # characters of the log that an error repeats


class Server:
    """Potato with one project, in a session of its own. It ends with `stop` or the `with` block."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.url = f"http://{HOST}:{port}"
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._held = contextlib.ExitStack()

    def start(self) -> Self:
        """Starts it, waits until it answers, and has everybody's items given to them.

        Raises RequestError without `.venv-review`, Busy where the project is being served already, and GongqingError
        with its last words where it does not start.
        """
        if not PROGRAM.exists():
            raise RequestError("Potato is not installed", where=PROGRAM, hint="make review installs and starts it")
        require_free(self._port)
        try:
            lock = self._held.enter_context(held(self.folder / SERVING, wait=False))
        except BlockingIOError as error:
            hint = "end that one first: two servers would write over each other's labels"
            raise Busy("a server of this project is running", where=self.folder, hint=hint) from error
        prepare(self.folder)
        # The lock goes to the process as well: it is held as long as Potato lives, whatever becomes of us.
        with (self.folder / LOG).open("ab") as words:
            self._process = subprocess.Popen(
                [PROGRAM, "start", CONFIG, "--host", HOST, "--port", str(self._port)],
                cwd=self.folder,
                env=_environment(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                start_new_session=True,
                pass_fds=[lock.fileno()],
                umask=0o077,
            )
        try:
            self._wait()
            self._assign()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends it with all that it has started. Stopping twice does nothing."""
        process, self._process = self._process, None
        if process is not None:
            end_session(process, _STOP_SECONDS)
        self._held.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def alive(self) -> bool:
        """Whether it is running."""
        return self._process is not None and self._process.poll() is None

    def _wait(self) -> None:
        until = time.monotonic() + _START_SECONDS
        while self.alive() and time.monotonic() < until:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/health", timeout=5):  # noqa: S310
                return
            time.sleep(0.1)
        words = (self.folder / LOG).read_text(encoding="utf-8", errors="replace")[-_LAST_WORDS:]
        hint = "mend what it names, or choose another port"
        raise GongqingError(f"Potato did not start:\n{words}", where=self.folder / LOG, hint=hint)

    def _assign(self) -> None:
        """Signs everybody in once: until then Potato counts what is theirs as free, and shows others a wrong total."""
        passwords = passwords_of(self.folder.parent)
        for name in usernames_of(self.folder):
            jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
            form = urllib.parse.urlencode({"action": "login", "email": name, "pass": passwords[name]}).encode()
            with urllib.request.build_opener(jar).open(f"{self.url}/auth", data=form, timeout=60) as page:
                page.read()


def require_free(port: int) -> None:
    """Raises RequestError where something else has the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise RequestError(f"port {port} of {HOST} is taken", hint="name another: --port") from error


def serve(home_folder: Path, first_port: int = PORT) -> Iterator[list[Server]]:
    """Serves all projects of a home for as long as the caller takes from this iterator; what is pushed in the meantime
    is there a second after it is taken again. Yields the servers whenever some were started.
    """
    servers: dict[Path, Server] = {}
    seen: dict[Path, tuple[int, ...]] = {}
    with contextlib.ExitStack() as stack:
        while True:
            changed = False
            for project in set(servers) - set(projects_of(home_folder)):
                servers.pop(project).stop()
                shutil.rmtree(project)  # nothing is left of it to be asked
            for project in projects_of(home_folder):
                stamp = tuple((project / name).stat().st_mtime_ns for name in (ITEMS, CONFIG))
                if project not in servers:
                    servers[project] = Server(project, first_port + len(servers))
                    stack.callback(servers[project].stop)
                if seen.get(project) != stamp or not servers[project].alive():
                    servers[project].stop()
                    servers[project].start()
                    seen[project], changed = stamp, True
            yield list(servers.values()) if changed else []


def main(arguments: Sequence[str] | None = None) -> int:
    """What `make review` runs."""
    parser = argparse.ArgumentParser(prog="make review", description="Serve what was pushed for people to label.")
    parser.add_argument("--port", type=int, default=PORT, help="of the first project; the next has the next")
    port = parser.parse_args(arguments).port
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if not projects_of(home()):
            hint = "gongqing review push KIND makes a project of it"
            raise RequestError("nothing was pushed for people to label", where=folder_of(home()), hint=hint)
        for started in serve(home(), port):
            for server in started:
                sys.stdout.write(f"{server.folder.name}\t{server.url}\n")
            if started:
                sys.stdout.write(f"passwords\t{folder_of(home()) / PASSWORDS}\n")
                sys.stdout.flush()
            time.sleep(_LOOK_AGAIN)
    except KeyboardInterrupt:
        return 0
    except GongqingError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def _environment(folder: Path) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("GONGQING_", "POTATO_", "PYTHON"))
    }
    # What it makes of the configuration goes into the project, not into the environment that projects share.
    templates = folder / "templates"
    templates.mkdir(mode=0o700, exist_ok=True)
    return {**kept, "TZ": "UTC", "POTATO_GENERATED_TEMPLATES_DIR": str(templates)}


if __name__ == "__main__":
    sys.exit(main())
