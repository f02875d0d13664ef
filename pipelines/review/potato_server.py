"""The servers of Potato, one a project, on 127.0.0.1: `make review`, until Ctrl-C.

Potato itself is a process of `.venv-review`.
"""

import argparse
import contextlib
import http.cookiejar
import os
import shutil
import signal
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from pipelines.errors import GongqingError, RequestError
from pipelines.review.labelling_server import HOST, LabellingServer
from pipelines.review.potato import PASSWORDS, folder_of, passwords_of, prepare, projects_of, usernames_of
from pipelines.review.potato_page import CONFIG, ITEMS
from pipelines.settings import ROOT, home

PROGRAM = ROOT / ".venv-review" / "bin" / "potato"
PORT = 8320  # of the first project; the next has the next
_LOOK_AGAIN = 1.0  # seconds between two looks at what was pushed


class Server(LabellingServer):
    """Potato with one project."""

    name, program, target, start_seconds = "Potato", PROGRAM, "review", 120

    def start(self) -> Self:
        """Starts it, waits until it answers, and has everybody's items given to them. Raises as any server."""
        super().start()
        try:
            self._sign_in_everybody()
        except BaseException:
            self.stop()
            raise
        return self

    def prepare(self) -> None:
        """Makes what Potato has stored fit the tasks."""
        prepare(self.folder)

    def command(self) -> Sequence[str]:
        """`potato start`, on this machine alone."""
        return "start", CONFIG, "--host", HOST, "--port", str(self.port)

    def environment(self) -> dict[str, str]:
        """What it makes of the configuration goes into the project, not into the environment that projects share."""
        away = ("GONGQING_", "POTATO_", "PYTHON", "AWS_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(away)}
        templates = self.folder / "templates"
        templates.mkdir(mode=0o700, exist_ok=True)
        return {**kept, "TZ": "UTC", "POTATO_GENERATED_TEMPLATES_DIR": str(templates)}

    def _sign_in_everybody(self) -> None:
        """Once: until then Potato counts what is theirs as free, and shows others a wrong total."""
        passwords = passwords_of(self.folder.parent)
        for name in usernames_of(self.folder):
            jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
            form = urllib.parse.urlencode({"action": "login", "email": name, "pass": passwords[name]}).encode()
            with urllib.request.build_opener(jar).open(f"{self.url}/auth", data=form, timeout=60) as page:
                page.read()


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


if __name__ == "__main__":
    sys.exit(main())
