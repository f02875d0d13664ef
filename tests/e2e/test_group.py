"""Processes that end with the one that started them. That they do when it is killed: test_ui_door.py."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest
from web_ui import alive, wait_until, wait_until_gone

from pipelines.cli.ui.group import together

# A member that starts a process of its own, writes down both, and waits.
MEMBER = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[1] + ".part", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(600)
"""


def written(path: Path) -> set[int]:
    wait_until(path.exists, 60)
    return set(map(int, path.read_text().split()))


def test_all_end_with_the_block_and_what_they_have_started_too(tmp_path: Path):
    with contextlib.suppress(ZeroDivisionError), together(os.environ) as group:
        for name in ("one", "two"):
            group.start(name, [sys.executable, "-c", MEMBER, str(tmp_path / name)])
        processes = written(tmp_path / "one") | written(tmp_path / "two")
        assert alive(processes) == processes
        assert group.ended() is None
        assert group.folder.stat().st_mode & 0o777 == 0o700
        raise ZeroDivisionError
    wait_until_gone(processes)
    assert not group.folder.exists()


@pytest.mark.drill("kill")
def test_all_end_where_the_watcher_is_killed(tmp_path: Path):
    with together(os.environ) as group:
        group.start("one", [sys.executable, "-c", MEMBER, str(tmp_path / "one")])
        processes = written(tmp_path / "one")
        group._watcher.send_signal(signal.SIGKILL)
        group._watcher.wait()
        assert str(group.ended()).startswith("watcher, process")
    wait_until_gone(processes)
