"""Processes of training, each in its own session, which ends with the block that started it; and who may train."""

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from pipelines.core.files import held
from pipelines.core.home import Home
from pipelines.core.service import end_session
from pipelines.errors import Busy
from pipelines.store.suppression import require_no_erasure
from pipelines.train.runs import LOCK, Metrics, parse_step

_SECONDS = 0.5  # between two looks at a file
_PATIENCE = 30  # seconds that a trainer has to end its processes
_LAST_WORDS = 15  # lines of a log that an error repeats
# The first line of torchrun's report of a worker that failed. It is long, and behind this line it says nothing.
_TORCHRUN = re.compile(r".*torch/distributed/elastic/.*\] failed \(exitcode: ")


class Locks(NamedTuple):
    """The locks of a worker in the folder of a run: `together` with all who train in its home, `own` alone."""

    together: IO[str]
    own: IO[str]

    def name(self, process: int) -> None:
        """Write down who works there."""
        self.own.truncate(0)
        self.own.write(f"{process}\n")
        self.own.flush()


@contextlib.contextmanager
def no_erasure(home: Path) -> Iterator[IO[str]]:
    """Nothing is erased meanwhile; yields the lock. Raises Busy during an erasure, or if one is unfinished."""
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(Home(home).lock("training", wait=False, shared=True))
        except BlockingIOError:
            raise Busy("an erasure is at work", where=home, hint="wait for it") from None
        require_no_erasure(home)
        yield lock


@contextlib.contextmanager
def at_work(run: Path) -> Iterator[Locks]:
    """Nobody else works in the folder of a run, and nothing is erased meanwhile. The file of its lock names this
    process, or the one that it has started last.

    Raises Busy where the run is at work, or an erasure is, or is unfinished.
    """
    with no_erasure(run.parents[1]) as together, contextlib.ExitStack() as stack:
        run.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            own = stack.enter_context(held(run / LOCK, wait=False))
        except BlockingIOError:
            process = (run / LOCK).read_text(encoding="utf-8").strip()
            raise Busy(f"this run is at work (process {process})", where=run, hint="wait for it, or end it") from None
        locks = Locks(together, own)
        locks.name(os.getpid())
        yield locks


@contextlib.contextmanager
def running(
    command: Sequence[str], environment: Mapping[str, str], log: Path, locks: Locks
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that works in the folder of its log, and ends with the block.

    It holds the locks for as long as it lives, also where this process is killed: nobody starts the run a second time
    beside it, and nobody erases what it has read.
    """
    with log.open("wb") as words:
        process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=log.parent,  # verl leaves files where it is started
            stdout=words,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[lock.fileno() for lock in locks],
        )
        locks.name(process.pid)
        try:
            yield process
            process.wait()
        finally:
            end_session(process, _PATIENCE)


def last_words(log: str) -> str:
    """The end of the log of a trainer that failed: its own words, and torchrun's with what code it ended."""
    lines = log.splitlines()
    report = next((number for number, line in enumerate(lines, 1) if _TORCHRUN.match(line)), None)
    return "\n".join(lines[:report][-_LAST_WORDS:])


def follow_metrics(process: "subprocess.Popen[bytes]", path: Path) -> Iterator[tuple[int, Metrics]]:
    """The lines of a file of metrics as they are written, until the process has ended and all are read."""
    offset = 0
    over = False
    while not over:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_SECONDS)
        over = process.poll() is not None
        if path.exists():
            with path.open("rb") as file:
                file.seek(offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    offset += len(line)
                    yield parse_step(line)
