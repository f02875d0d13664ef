"""Processes that end with the one that started them: in order, with an error, and when it is killed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.cli.ui.group import together
from pipelines.settings import ROOT

# A member that starts a process of its own, writes down both, and waits.
MEMBER = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[1] + ".part", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(600)
"""
STARTER = """
import os, sys, time
from pipelines.cli.ui.group import together

with together(os.environ) as group:
    for name in ("one", "two"):
        group.start(name, [sys.executable, "-c", sys.argv[1], str(group.folder.parent / f"{sys.argv[2]}-{name}")])
    time.sleep(600)
"""


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except (FileNotFoundError, ProcessLookupError):
        return False


def written(path: Path) -> list[int]:
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    return [int(word) for word in path.read_text().split()]


def wait_until_gone(processes: list[int]) -> None:
    until = time.monotonic() + 90
    while any(map(alive, processes)):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_all_end_with_the_block_and_what_they_have_started_too(tmp_path: Path):
    with together(os.environ) as group:
        for name in ("one", "two"):
            group.start(name, [sys.executable, "-c", MEMBER, str(tmp_path / name)])
        processes = [*written(tmp_path / "one"), *written(tmp_path / "two")]
        assert all(map(alive, processes))
        assert group.ended() is None
        assert group.folder.stat().st_mode & 0o777 == 0o700
    wait_until_gone(processes)
    assert not group.folder.exists()


def test_an_error_in_the_block_ends_all(tmp_path: Path):
    with contextlib.suppress(ZeroDivisionError), together(os.environ) as group:
        group.start("one", [sys.executable, "-c", MEMBER, str(tmp_path / "one")])
        processes = written(tmp_path / "one")
        raise ZeroDivisionError
    wait_until_gone(processes)


def test_a_group_without_members_ends(tmp_path: Path):
    with together(os.environ) as group:
        assert group.ended() is None
    assert not group.folder.exists()


def test_one_that_ends_before_its_time_is_named(tmp_path: Path):
    with together(os.environ) as group:
        process = group.start("the short one", [sys.executable, "-c", "raise SystemExit(3)"])
        process.wait(timeout=60)
        assert group.ended() == f"the short one, process {process.pid}, ended with code 3"


@pytest.mark.drill("kill")
def test_all_end_where_the_one_that_started_them_is_killed(tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", STARTER, MEMBER, "of"], env=environment) as starter:
        processes = [*written(tmp_path / "of-one"), *written(tmp_path / "of-two")]
        starter.kill()
    wait_until_gone(processes)


@pytest.mark.drill("kill")
def test_all_end_where_the_watcher_is_killed(tmp_path: Path):
    with together(os.environ) as group:
        group.start("one", [sys.executable, "-c", MEMBER, str(tmp_path / "one")])
        processes = written(tmp_path / "one")
        group._watcher.send_signal(signal.SIGKILL)
        group._watcher.wait()
        assert (ended := group.ended()) is not None
        assert ended.startswith("watcher, process")
    wait_until_gone(processes)
