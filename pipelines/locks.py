"""Locks between processes, on files of the home. The kernel gives them back when a process ends, however it ends."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def held(path: Path, *, wait: bool = True) -> Iterator[IO[str]]:
    """Hold the lock of a file, made if it is missing; gives the open file, for a note of who holds it.

    Raises BlockingIOError where another holds it and `wait` is false.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield file
