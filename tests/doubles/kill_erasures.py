"""Erasures killed with SIGKILL at random steps, each finished by another process; prints a line of JSON for every kill.

Run as a process of its own (`python kill_erasures.py HOME FOLDER SEED KILLS`): it has imported polars, but started none
of its workers, so that a fork of it is whole. A step is a line executed where an erasure reads, writes or deletes.
"""

import json
import mmap
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow.compute  # noqa: F401 - the first cast imports it: once here, not in every fork

from pipelines.operations import erase as package
from pipelines.operations.erase.erasing import erase, resume
from pipelines.operations.erase.request import Request
from pipelines.store.suppression import SuppressionList  # noqa: F401 - imported before the fork

PIPELINES = Path(package.__file__).parents[2]
WATCHED = tuple(str(PIPELINES / part) for part in ("operations/erase/", "store/", "llm/ledger/", "core/files.py"))
# Not every line of the loops over strings and cells: they change nothing, and are most of the steps.
UNWATCHED = tuple(str(PIPELINES / "operations" / "erase" / name) for name in ("traces.py", "rows.py", "scrub.py"))
ASKED = Request(rows=("s:a", "s:x"))


class Steps:
    """Counts steps where the parent can see them; kills this process at step `deadly`."""

    def __init__(self, shown: mmap.mmap, deadly: int | None) -> None:
        self.shown, self.deadly, self.count = shown, deadly, 0

    def follow(self, work: Callable[[], Any]) -> None:
        sys.settrace(self._on_call)
        work()
        sys.settrace(None)

    def _on_call(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        name = frame.f_code.co_filename
        return self._on_line if name.startswith(WATCHED) and name not in UNWATCHED else None

    def _on_line(self, _frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line":
            self.count += 1
            self.shown[:8] = self.count.to_bytes(8, "little")
            if self.count == self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
        return self._on_line


def forked(work: Callable[[], Any]) -> int:
    """How a fork that does `work` ended: 0, an exit code, or a signal below 0."""
    if (child := os.fork()) == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    made, folder, seed, kills = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    shown = mmap.mmap(-1, 8)
    whole = Path(shutil.copytree(made, folder / "whole"))
    assert forked(lambda: Steps(shown, None).follow(lambda: erase(whole, ASKED))) == 0
    steps = int.from_bytes(shown[:8], "little")
    for number, deadly in enumerate(sorted(random.Random(seed).sample(range(1, steps), kills))):
        home = Path(shutil.copytree(made, folder / str(number)))
        ended = forked(lambda: Steps(shown, deadly).follow(lambda: erase(home, ASKED)))  # noqa: B023 - done at once
        begun = any((home / "erasures").glob("*.plan"))
        again = resume if begun or any((home / "erasures").glob("*.json")) else lambda home: erase(home, ASKED)
        told = {"step": deadly, "of": steps, "ended": ended, "begun": begun, "again": forked(lambda: again(home))}  # noqa: B023
        sys.stdout.write(json.dumps({**told, "home": str(home)}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
