"""Why a run was stopped from within: a file, written by the first process of a trainer that knows, read by the launch.

verl itself puts the reason, if anywhere, into the midst of a log of many processes.
"""

import contextlib
import os
from pathlib import Path

SCORED = "GONGQING_SCORED"  # names the folder of a run where its rewards write what they gave
REASON = "stopped.txt"  # in that folder


def stop(why: str) -> None:
    """Write the reason, unless one is written already or the run has no folder."""
    if SCORED in os.environ:
        path = Path(os.environ[SCORED]) / REASON
        with contextlib.suppress(OSError), path.open("x", encoding="utf-8") as file:  # the caller raises its own error
            file.write(why)


def reason(scored: Path | None = None) -> str:
    """Why the run of a folder was stopped; empty where nobody knows. Default: the folder of this process's run."""
    path = (scored or Path(os.environ.get(SCORED, os.devnull))) / REASON
    return path.read_text(encoding="utf-8") if path.is_file() else ""
