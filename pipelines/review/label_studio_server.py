"""A server of Label Studio for one person, on 127.0.0.1: `make label-studio WHO=NAME`, until Ctrl-C.

Label Studio is a process of `.venv-label-studio`. Whoever works from elsewhere comes through the operator's own tunnel.
"""

import argparse
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Self

from pipelines.core.files import held, write_whole
from pipelines.core.service import end_session
from pipelines.errors import Busy, GongqingError, RequestError, UnknownName
from pipelines.review.label_studio import ACCESS, DATA, Access, access_of, folder_of
from pipelines.review.potato import SERVING
from pipelines.review.potato_server import HOST, LOG, require_free
from pipelines.settings import ROOT, home

PROGRAM = ROOT / ".venv-label-studio" / "bin" / "label-studio"
PORT = 8400
_START_SECONDS, _STOP_SECONDS = 300, 20  # the first start makes its database
_LAST_WORDS = 2000  # characters of the log that an error repeats


class Server:
    """Label Studio of one person, in a session of its own. It ends with `stop` or the `with` block."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.url = folder, f"http://{HOST}:{port}"
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._held = contextlib.ExitStack()

    def start(self) -> Self:
        """Starts it, and waits until it answers.

        Raises RequestError without `.venv-label-studio`, Busy where the person has one already, and GongqingError with
        its last words where it does not start.
        """
        if not PROGRAM.exists():
            raise RequestError("Label Studio is not installed", where=PROGRAM, hint="make label-studio installs it")
        require_free(self._port)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            lock = self._held.enter_context(held(self.folder / SERVING, wait=False))
        except BlockingIOError as error:
            raise Busy("a server of this person is running", where=self.folder, hint="end that one first") from error
        access = self._access()
        with (self.folder / LOG).open("ab") as words:
            self._process = subprocess.Popen(
                [PROGRAM, "start", "--no-browser", "--host", self.url, "--internal-host", HOST, "-p", str(self._port)],
                cwd=self.folder,
                env=_environment(self.folder, access),
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                start_new_session=True,
                pass_fds=[lock.fileno()],
                umask=0o077,
            )
        try:
            self._wait()
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

    def _access(self) -> Access:
        """The token and the password of the person, made once, and the address of today."""
        if (self.folder / ACCESS).exists():
            known = access_of(self.folder)
        else:
            known = Access(self.url, secrets.token_hex(20), secrets.token_urlsafe(12))
        access = known._replace(url=self.url)
        write_whole(self.folder / ACCESS, (json.dumps(access._asdict()) + "\n").encode())
        return access

    def _wait(self) -> None:
        until = time.monotonic() + _START_SECONDS
        while self.alive() and time.monotonic() < until:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/health", timeout=5):  # noqa: S310
                return
            time.sleep(0.5)
        words = (self.folder / LOG).read_text(encoding="utf-8", errors="replace")[-_LAST_WORDS:]
        hint = "mend what it names, or choose another port"
        raise GongqingError(f"Label Studio did not start:\n{words}", where=self.folder / LOG, hint=hint)


def username_of(person: str) -> str:
    """What a person signs in as: Label Studio wants an address."""
    return f"{person}@review.invalid"


def main() -> int:
    """What `make label-studio` runs."""
    parser = argparse.ArgumentParser(prog="make label-studio", description="Serve one person's tasks for labelling.")
    parser.add_argument("who", help="the name, or the pseudonym, of the person")
    parser.add_argument("--port", type=int, default=PORT)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server = Server(folder_of(home()) / _pseudonym(arguments.who), arguments.port)
        with server:
            access = access_of(server.folder)
            sys.stdout.write(f"{server.url}\t{username_of(server.folder.name)}\t{access.password}\n")
            sys.stdout.write("gongqing review push KIND --to label-studio gives it the tasks\n")
            sys.stdout.flush()
            while server.alive():
                time.sleep(1)
    except KeyboardInterrupt:
        return 0
    except GongqingError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 1


def _pseudonym(who: str) -> str:
    names = json.loads((folder_of(home()).parent / "people.json").read_bytes()) if _has_people() else {}
    for pseudonym, name in names.items():
        if who in (pseudonym, name):
            return str(pseudonym)
    raise UnknownName("person that tasks went out to", who, names.values())


def _has_people() -> bool:
    return (folder_of(home()).parent / "people.json").exists()


def _environment(folder: Path, access: Access) -> dict[str, str]:
    """Neither password nor token stands in the command, which other users of the machine can read."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GONGQING_", "PYTHON"))}
    return {
        **kept,
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder / DATA),
        "LABEL_STUDIO_USERNAME": username_of(folder.name),
        "LABEL_STUDIO_PASSWORD": access.password,
        "LABEL_STUDIO_USER_TOKEN": access.token,
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK": "true",
        "DJANGO_DB": "sqlite",
        "COLLECT_ANALYTICS": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "LATEST_VERSION_CHECK": "false",
    }


if __name__ == "__main__":
    sys.exit(main())
