"""Sessions: who has requests under way, and whether they still live.

A session holds the flock of a file of its own in `<ledger>-sessions/`. The kernel gives it back however the process
ends, so whoever finds it free knows that the session is dead: its requests are lost.
"""

import fcntl
import os
import uuid
from pathlib import Path


class Session:
    """A session of this process, alive until `end`."""

    def __init__(self, folder: Path) -> None:
        """Begun by one process at a time. Raises OSError."""
        folder.mkdir(mode=0o700, exist_ok=True)
        self.name = uuid.uuid4().hex
        self._path = folder / self.name
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)  # before anybody can know its name

    def end(self) -> None:
        """From here on it is dead."""
        self._path.unlink(missing_ok=True)
        os.close(self._file)


def beside(ledger: Path) -> Path:
    """The folder of the sessions' files."""
    return ledger.with_name(ledger.name + "-sessions")


def alive(folder: Path, name: str) -> bool:
    """Whether the session of that name lives. Shared, so that two who look do not see each other."""
    try:
        file = os.open(folder / name, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def tidy(folder: Path) -> None:
    """Removes the files of the dead. By one process at a time, as sessions begin: so none is half begun."""
    if folder.is_dir():
        for path in folder.iterdir():
            if not alive(folder, path.name):
                path.unlink(missing_ok=True)
