"""Processes that end together with the one that started them, however it ends.

They form a group. Beside them stands a watcher, outside of the group: it holds the other end of a pipe, and when that
closes, because the work is done or its starter was killed, it ends the group. So whatever a process of the group has
started meanwhile ends as well.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pipelines.settings import ROOT

_PATIENCE = 60.0  # seconds that the group has to end by itself: a run of training ends processes of its own
_POLL = 0.05  # seconds


class Group:
    """The group; `together` makes one. `folder` is private, and goes with it."""

    def __init__(self, folder: Path, watcher: "subprocess.Popen[bytes]", environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._environment = dict(environment)
        self._watcher = watcher
        self._group = 0  # until the first is started, which makes itself one
        self._members: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Starts one more in it."""
        process = subprocess.Popen(
            command, env=self._environment, cwd=ROOT, stdin=subprocess.DEVNULL, process_group=self._group
        )
        if not self._group:
            self._group = process.pid
            assert self._watcher.stdin is not None
            self._watcher.stdin.write(f"{self._group}\n".encode())
            self._watcher.stdin.flush()
        self._members[name] = process
        return process

    def ended(self) -> str | None:
        """The first that has ended before its time, and how; None while all are at work."""
        for name, process in {**self._members, "watcher": self._watcher}.items():
            if (code := process.poll()) is not None:
                return f"{name}, process {process.pid}, ended with code {code}"
        return None

    def close(self) -> None:
        """Ends the group, by force what does not end in time."""
        assert self._watcher.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._watcher.stdin.close()
        while self._watcher.poll() is None:
            for process in self._members.values():
                process.poll()  # one that has ended is of the group until somebody asks how
            time.sleep(_POLL)
        if self._group and self._watcher.poll() != 0:  # it was killed itself
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._group, signal.SIGKILL)
        for process in self._members.values():
            process.wait()


@contextlib.contextmanager
def together(environment: Mapping[str, str]) -> Iterator[Group]:
    """A group without members yet, whose processes have this environment; they end with the block, or with this one."""
    folder = Path(tempfile.mkdtemp(prefix="gongqing-"))  # for its owner alone
    try:
        watcher = subprocess.Popen(
            [sys.executable, "-m", __name__, str(folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # what ends the terminal's processes does not end it first
        )
        group = Group(folder, watcher, environment)
        try:
            yield group
        finally:
            group.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watch(folder: Path) -> None:
    """Waits until standard input closes, then ends the group that it named, and its folder."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    process_id = b""
    while some := os.read(0, 64):
        process_id += some
    with contextlib.suppress(ProcessLookupError):
        if process_id.strip():
            _end(int(process_id))
    shutil.rmtree(folder, ignore_errors=True)


def _end(group: int) -> None:
    """Asks a group to end, then forces it. Raises ProcessLookupError as soon as nobody is left."""
    os.killpg(group, signal.SIGINT)  # as Ctrl-C would: a run of training ends what it has started at that alone
    patience = time.monotonic() + _PATIENCE
    while time.monotonic() < patience and _is_at_work(group):
        time.sleep(_POLL)
    os.killpg(group, signal.SIGKILL)


def _is_at_work(group: int) -> bool:
    """Whether one of a group still runs. In a container nobody may ask how an orphan ended: it stays listed, as ended.
    Raises ProcessLookupError as soon as nobody is left.
    """
    os.killpg(group, 0)
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state, _, its_group = path.read_bytes().rpartition(b")")[2].split()[:3]
            if int(its_group) == group and state not in {b"Z", b"X"}:
                return True
    return not Path("/proc/self/stat").exists()  # without /proc the call above is all there is to know


if __name__ == "__main__":
    _watch(Path(sys.argv[1]))
