"""A server that people label on: a process of an environment of its own, on 127.0.0.1, until it is stopped.

Whoever works from elsewhere comes through the operator's own tunnel or web server.
"""

import contextlib
import socket
import subprocess
import time
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

from pipelines.core.files import held
from pipelines.core.service import end_session
from pipelines.errors import Busy, GongqingError, RequestError
from pipelines.review.potato import SERVING

HOST = "127.0.0.1"
LOG = "server.log"
_LAST_WORDS = 2000  # characters of the log that an error repeats
_STOP_SECONDS = 20


class LabellingServer(ABC):
    """A server in a session of its own, with all that it keeps in `folder`. It ends with `stop` or the `with` block."""

    name: ClassVar[str]
    program: ClassVar[Path]
    target: ClassVar[str]  # of make, which installs and starts it
    start_seconds: ClassVar[float]

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.url = folder, f"http://{HOST}:{port}"
        self.port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._held = contextlib.ExitStack()

    @abstractmethod
    def command(self) -> Sequence[str]:
        """What follows the program."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Its environment."""

    @abstractmethod
    def prepare(self) -> None:
        """Makes its folder fit, before it starts."""

    def start(self) -> Self:
        """Starts it, and waits until it answers.

        Raises RequestError where it is not installed or its port is taken, Busy where the folder is being served
        already, and GongqingError with its last words where it does not start.
        """
        if not self.program.exists():
            hint = f"make {self.target} installs and starts it"
            raise RequestError(f"{self.name} is not installed", where=self.program, hint=hint)
        _require_free(self.port)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            lock = self._held.enter_context(held(self.folder / SERVING, wait=False))
        except BlockingIOError as error:
            hint = "end that one first: two servers would write over each other's labels"
            raise Busy(f"a server of {self.name} is running here", where=self.folder, hint=hint) from error
        self.prepare()
        # The lock goes to the process as well: it is held as long as the process lives, whatever becomes of us.
        with (self.folder / LOG).open("ab") as words:
            self._process = subprocess.Popen(
                [self.program, *self.command()],
                cwd=self.folder,
                env=self.environment(),
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

    def _wait(self) -> None:
        until = time.monotonic() + self.start_seconds
        while self.alive() and time.monotonic() < until:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/health", timeout=5):  # noqa: S310
                return
            time.sleep(0.1)
        words = (self.folder / LOG).read_text(encoding="utf-8", errors="replace")[-_LAST_WORDS:]
        hint = "mend what it names, or choose another port"
        raise GongqingError(f"{self.name} did not start:\n{words}", where=self.folder / LOG, hint=hint)


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise RequestError(f"port {port} of {HOST} is taken", hint="name another: --port") from error
