"""A process that works on an index and is killed with SIGKILL at a step of its own choice.

Run as `python kill_index.py FOLDER WORK STEP`: does WORK on the index in FOLDER and kills itself before step STEP; a
step is a line executed in the modules that write (`runs`, `remembered`). Without STEP it prints how many there are.
"""

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl
from index_texts import columns, families

from pipelines.dedup import remembered, runs
from pipelines.dedup.index import Index

WRITERS = {remembered.__file__, runs.__file__}
TEXTS = families(12, seed=8)
BEFORE: dict[str, str | None] = {f"post:{i:03d}": text for i, text in enumerate(TEXTS[:40])}
AFTER: dict[str, str | None] = {f"post:{i:03d}": text for i, text in enumerate(TEXTS)} | {"post:015": TEXTS[3]}
del AFTER["post:011"]
MORE: dict[str, str | None] = {f"post:{i:03d}": text for i, text in enumerate(TEXTS)}
FORGOTTEN = ["post:012", "post:020"]


def work(folder: Path, what: str) -> None:
    """`build` from nothing, `grow`, `change` (some texts go), or `forget`."""
    index = Index(folder, mode="fast")
    if what == "build":
        index.clusters(*columns(BEFORE))
    elif what == "grow":
        index.clusters(*columns(MORE))
    elif what == "change":
        index.clusters(*columns(AFTER))
    else:
        index.forget(pl.Series(FORGOTTEN))


class Steps:
    """Counts the steps, and kills the process at step `deadly`."""

    def __init__(self, deadly: int | None) -> None:
        self.taken = 0
        self.deadly = deadly

    def on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self.on_line if frame.f_code.co_filename in WRITERS else None

    def on_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            if self.taken == self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            self.taken += 1
        return self.on_line


if __name__ == "__main__":
    folder, what, *deadly = sys.argv[1:]
    steps = Steps(int(deadly[0]) if deadly else None)
    sys.settrace(steps.on_call)
    work(Path(folder), what)
    sys.settrace(None)
    print(steps.taken)  # noqa: T201
