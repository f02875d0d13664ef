"""A home's locks: one process makes tables at a time, and who comes second is refused or waits."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipelines.core.home import PRIVATE, Home
from pipelines.errors import Busy
from pipelines.settings import ROOT

HOLD = """
import sys
from pathlib import Path
from pipelines.core.home import Home
with Home(Path(sys.argv[1])).refreshing():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@contextmanager
def another_process(home: Home) -> Iterator["subprocess.Popen[str]"]:
    """One that holds the refresh lock until its standard input ends."""
    command = [sys.executable, "-c", HOLD, str(home.folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        yield other
        assert other.stdin is not None
        other.stdin.close()


def test_who_comes_second_is_told_who_is_at_work(home: Home):
    with another_process(home) as other:
        refused = pytest.raises(Busy, match=f"at work: process {other.pid} on")
        with refused, home.refreshing():
            pass
    with home.refreshing():
        pass


def test_who_may_wait_does_and_says_for_whom_once(home: Home):
    said: list[str] = []
    with another_process(home) as other:
        assert other.stdin is not None
        threading.Timer(1, other.stdin.close).start()
        with home.refreshing(waits=said.append):
            assert other.wait(10) == 0
    assert len(said) == 1
    assert str(other.pid) in said[0]


def test_a_thread_that_holds_it_goes_on_and_another_does_not(home: Home):
    refused: list[BaseException] = []

    def try_it() -> None:
        try:
            with home.refreshing():
                pass
        except Busy as error:
            refused.append(error)

    with home.refreshing():
        with home.refreshing():
            pass
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
        with home.refreshing():
            pass
    assert len(refused) == 1
    try_it()
    assert len(refused) == 1


def test_a_lock_that_is_held_is_refused_to_a_process_that_does_not_wait(home: Home):
    refused = pytest.raises(BlockingIOError)
    with home.lock("giving", shared=True), home.lock("giving", shared=True), refused, home.lock("giving", wait=False):
        pass
    with home.lock("giving", wait=False):
        pass


def test_every_path_is_private(home: Home):
    """What `doctor` looks at, and a home closes to others, is all that a path names; what the user writes is his."""
    named = [name for name in vars(Home) if isinstance(getattr(home, name), Path)]
    assert named
    for name in named:
        path: Path = getattr(home, name)
        first = home.folder / path.relative_to(home.folder).parts[0]
        if name not in ("settings", "dagster_yaml"):
            assert any(first.match(pattern) for pattern in PRIVATE), name
