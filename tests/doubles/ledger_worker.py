"""A process that asks through the ledger, for tests that run several of them or kill them.

`python ledger_worker.py LEDGER LOG FIRST LAST [--budget CAP] [--at-once N] [--seconds S] [--kill-at STEP | --steps]`

Each call is "sent" by one line in LOG (`sent KEY PID`), takes some milliseconds, costs its whole reserve, and ends with
another line once the ledger has the answer (`kept KEY PID`). Lines are appended whole, whatever dies. With a step the
process kills itself there; a step is a line executed in the modules that write. `--steps` prints how many there are.
"""

import argparse
import asyncio
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from ledger_calls import answer, begin_when_free, opened

from pipelines.errors import BudgetSpent
from pipelines.llm.ledger import file as ledger_file
from pipelines.llm.ledger import writer as ledger_writer
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Attempt

RESERVE = 10
WRITERS = {ledger_file.__file__, ledger_writer.__file__}


class Steps:
    """Counts the steps in all threads, and kills the process at step `deadly`."""

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


async def work(ledger: Ledger, log: int, numbers: range, at_once: int, seconds: float, budget: int | None) -> None:
    waiting = iter(numbers)

    async def one_after_the_other() -> None:
        for number in waiting:
            try:
                begun = await begin_when_free(ledger, number, reserve=RESERVE, budget=budget)
            except BudgetSpent:
                return
            if isinstance(begun, Attempt):
                os.write(log, f"sent {begun.call.key} {os.getpid()}\n".encode())
                await asyncio.sleep(seconds)
                await ledger.answered(begun, answer(number, RESERVE))
                os.write(log, f"kept {begun.call.key} {os.getpid()}\n".encode())

    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ledger", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.002)
    parser.add_argument("--kill-at", type=int)
    parser.add_argument("--steps", action="store_true")
    given = parser.parse_args()
    log = os.open(given.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    steps = Steps(given.kill_at)
    if given.steps or given.kill_at is not None:
        threading.settrace(steps.on_call)
        sys.settrace(steps.on_call)
    with Ledger(given.ledger) as ledger:
        budget = None if given.budget is None else opened(ledger, given.budget).id
        numbers = range(given.first, given.last)
        asyncio.run(work(ledger, log, numbers, given.at_once, given.seconds, budget))
    sys.settrace(None)
    if given.steps:
        print(steps.taken)  # noqa: T201


if __name__ == "__main__":
    main()
