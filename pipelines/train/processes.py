"""Processes of training: each in a session of its own, which ends with the block that started it."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pipelines.errors import Busy
from pipelines.locks import held
from pipelines.train.runs import LOCK, Metrics, of_step

_SECONDS = 0.5  # between two looks at what was written
_PATIENCE = 30  # seconds that a trainer has to end its processes


@contextlib.contextmanager
def running(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that works in the folder of its log, and ends with the block.

    It holds the lock of its folder for as long as it lives, also where this process is killed: nobody starts the run a
    second time beside it. The lock's file names its process.

    Raises Busy where the run is at work.
    """
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.ExitStack() as opened:
        try:
            lock = opened.enter_context(held(log.parent / LOCK, wait=False))
        except BlockingIOError:
            at_work = (log.parent / LOCK).read_text(encoding="utf-8").strip()
            raise Busy(
                f"this run is at work (process {at_work})", where=log.parent, remedy="wait for it, or end it"
            ) from None
        words = opened.enter_context(log.open("wb"))
        process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=log.parent,  # verl leaves files where it is started
            stdout=words,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(lock.fileno(),),
        )
        lock.truncate(0)
        lock.write(f"{process.pid}\n")
        lock.flush()
        try:
            yield process
            process.wait()
        finally:
            ended(process, _PATIENCE)


def ended(process: "subprocess.Popen[bytes]", patience: float) -> None:
    """Ends a process and its session, by force where it does not end in `patience` seconds."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def followed(process: "subprocess.Popen[bytes]", path: Path) -> Iterator[tuple[int, Metrics]]:
    """The lines of a file of metrics as they are written, until the process has ended and all are read."""
    at = 0
    while True:
        over = process.poll() is not None
        if path.exists():
            with path.open("rb") as file:
                file.seek(at)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    at += len(line)
                    yield of_step(line)
        if over:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_SECONDS)
