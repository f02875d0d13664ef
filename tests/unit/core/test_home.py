"""A home's locks: one process makes tables at a time, and who comes second is refused or waits."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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


def test_a_second_process_is_refused_or_waits_and_hears_once_who_is_at_work(home: Home):
    waits: list[str] = []
    command = [sys.executable, "-c", HOLD, str(home.folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "held\n"
        refused = pytest.raises(Busy, match=f"at work: process {other.pid} on")
        with refused, home.refreshing():
            pass
        threading.Timer(1, other.stdin.close).start()
        with home.refreshing(waits=waits.append):
            assert other.wait(10) == 0
    assert len(waits) == 1
    assert str(other.pid) in waits[0]


def test_a_thread_that_holds_it_goes_on_and_another_does_not(home: Home):
    def held() -> bool:
        with suppress(Busy), home.refreshing():
            return True
        return False

    with ThreadPoolExecutor(1) as another:
        with home.refreshing():
            assert (held(), another.submit(held).result(), held()) == (True, False, True)
        assert another.submit(held).result()


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
        first = home.folder / getattr(home, name).relative_to(home.folder).parts[0]
        if name not in ("settings", "dagster_yaml"):
            assert any(first.match(pattern) for pattern in PRIVATE), name
