"""How far a stage is with its questions."""

import time
from decimal import Decimal
from typing import Any, Protocol

from pipelines.llm.money import amount
from pipelines.llm.questions import Reply


class Progress(Protocol):
    """Shows where a stage stands."""

    def update(self, stage: str, total: int, done: int, cached: int, failed: int, spent: Decimal) -> None:
        """Of `total` questions `done` have a reply, `cached` of them without a call, `failed` of them without a value.

        `spent` is what the calls have cost that were made for them.
        """


class Tally:
    """Counts the replies of a stage, and the money, and reports to `progress`, at most ten times a second, and at the
    end.
    """

    EVERY = 0.1  # seconds

    def __init__(self, progress: Progress | None, stage: str, total: int) -> None:
        self._progress, self._stage, self._total = progress, stage, total
        self._done = self._cached = self._failed = self._nano = 0
        self._reported_at = float("-inf")

    def add_cost(self, nano: int) -> None:
        """A call has cost so many nano-units."""
        self._nano += nano

    def reply(self, reply: Reply[Any], *, cached: bool) -> None:
        """One more question has its reply; `cached`: without a call."""
        self._done += 1
        self._cached += cached
        self._failed += reply.reason is not None
        self.report()

    def report(self) -> None:
        """Reports where things stand, unless that was a moment ago and more is to come."""
        if self._progress is None:
            return
        now = time.monotonic()
        if self._done == self._total or now - self._reported_at >= self.EVERY:
            self._reported_at = now
            self._progress.update(self._stage, self._total, self._done, self._cached, self._failed, amount(self._nano))
