"""The two ends of a stub that runs in a separate process: its parent, and the server itself."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pipelines.core.service import end_session

_ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 60
_STOP_SECONDS = 10


class ServerProcess:
    """A stub in a process and session of its own, on a port of 127.0.0.1.

    It ends with `stop`, with the `with` block, or when this process dies, however that happens.
    """

    def __init__(self, module: str, options: Sequence[str]) -> None:
        """Of `python -m module --with-parent options…`, which says its address first of all."""
        self._command = [sys.executable, "-m", module, "--with-parent", *options]
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> Self:
        """Starts the server and waits until it answers. Raises RuntimeError with its words when it does not."""
        if self._process is not None:
            return self
        # A file, not a pipe: nobody reads it while the server runs, and a full pipe would stop it.
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the server ends
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._words, "bufsize": 0}
        process = subprocess.Popen(self._command, cwd=_ROOT, start_new_session=True, **pipes)
        self._process = process
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
        self.url = process.stdout.readline().decode().strip() if ready else ""
        if not self.url:
            words = self.stop()
            raise RuntimeError(f"it did not start ({' '.join(self._command)}): {words or 'no answer in time'}")
        return self

    def stop(self) -> str:
        """Ends the server and everything it started, and gives its words. Stopping twice does nothing."""
        process, self._process = self._process, None
        if process is None:
            return ""
        end_session(process, _STOP_SECONDS)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()
        with self._words:
            self._words.seek(0)
            return self._words.read().decode(errors="replace").strip()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _answer(self, path: str, body: bytes | None = None) -> Any:
        """The JSON that the server gives for a path: by POST where there is a body, by GET without."""
        request = urllib.request.Request(f"{self.url}/{path}", data=body)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


def told_to_end(with_parent: bool) -> asyncio.Event:
    """What is set when the server is to end: on Ctrl-C and SIGTERM; `with_parent`: when standard input ends."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    if with_parent:
        loop.add_reader(sys.stdin.fileno(), _end_with, sys.stdin.fileno(), over)
    return over


def _end_with(pipe: int, over: asyncio.Event) -> None:
    """Whoever started the server holds the other end of `pipe`: it closes when they die."""
    if not os.read(pipe, 1024):
        over.set()


def say(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
