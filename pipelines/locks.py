"""Locks between processes, on files of the home. The kernel gives them back when a process ends, however it ends."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def held(path: Path, *, wait: bool = True, shared: bool = False) -> Iterator[IO[str]]:
    """Hold the lock of a file, made if it is missing; gives the open file, for a note of who holds it.

    Several may hold it at once where each of them asks for it `shared`. Raises BlockingIOError where another holds it
    and `wait` is false.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        yield file
