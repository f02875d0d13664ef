"""A process that asks through the ledger, for tests that run several of them or kill them.

`python ledger_worker.py LEDGER LOG FIRST LAST [--budget CAP] [--at-once N] [--seconds S]`

Each call is "sent" by one line in LOG (`sent KEY PID`), takes some milliseconds, costs its whole reserve, and ends with
another line once the ledger has the answer (`kept KEY PID`). Lines are appended whole, whatever dies.
"""

import argparse
import asyncio
import os
from collections import Counter
from pathlib import Path

from ledger_calls import answer, begin_when_free, key_of, opened

from pipelines.errors import BudgetSpent
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Attempt

RESERVE = 10


def lines(log: Path, kind: str) -> list[str]:
    """The keys of what was sent, or kept, in order."""
    written = log.read_text().splitlines() if log.exists() else []
    return [line.split()[1] for line in written if line.startswith(kind)]


def is_sound(home: Path, in_flight: int, numbers: int) -> Counter[str]:
    """What holds after any number of deaths with so many calls in flight each. Gives the lost attempts by key."""
    sent, kept = Counter(lines(home / "log", "sent")), set(lines(home / "log", "kept"))
    with Ledger(home / "ledger.sqlite") as ledger:
        ledger.check()
        assert kept <= ledger.recorded(sorted(kept)).keys(), "an answer is lost"
        answered = ledger.recorded([key_of(number) for number in range(numbers)]).keys()
        open_ = ledger.open_attempts()
        assert all(one.lost for one in open_), "a dead process passes for a living one"
        lost = Counter(one.key for one in open_)
        for key, times in sent.items():
            assert times <= lost[key] + (key in answered), "a call left that the ledger does not know of"
        assert len(open_) <= in_flight
        if (budget := ledger.budget("refresh")) is not None:
            assert budget.spent == RESERVE * len(answered)
            assert budget.held == RESERVE * len(open_)
    return lost


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
    given = parser.parse_args()
    log = os.open(given.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with Ledger(given.ledger) as ledger:
        budget = None if given.budget is None else opened(ledger, given.budget).id
        numbers = range(given.first, given.last)
        asyncio.run(work(ledger, log, numbers, given.at_once, given.seconds, budget))


if __name__ == "__main__":
    main()
