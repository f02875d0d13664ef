"""How far a stage is with its questions, told to whoever shows it."""

import time
from decimal import Decimal
from typing import Any, Protocol

from pipelines.llm.money import amount
from pipelines.llm.questions import Reply


class Progress(Protocol):
    """Is told where a stage stands."""

    def update(self, stage: str, total: int, done: int, cached: int, failed: int, spent: Decimal) -> None:
        """Of `total` questions `done` have a reply, `cached` of them without a call, `failed` of them without a value.

        `spent` is what the calls have cost that were made for them.
        """


class Told:
    """Counts the replies of a stage, and the money, and tells `progress` of them, at most ten times a second, and at
    the end.
    """

    EVERY = 0.1  # seconds

    def __init__(self, progress: Progress | None, stage: str, total: int) -> None:
        self._progress, self._stage, self._total = progress, stage, total
        self._done = self._cached = self._failed = self._nano = 0
        self._told_at = float("-inf")

    def paid(self, nano: int) -> None:
        """A call has cost so many nano-units."""
        self._nano += nano

    def reply(self, reply: Reply[Any], *, cached: bool) -> None:
        """One more question has its reply; `cached`: without a call."""
        self._done += 1
        self._cached += cached
        self._failed += reply.reason is not None
        self.now(last=self._done == self._total)

    def now(self, *, last: bool = False) -> None:
        """Tells where things stand, unless that was a moment ago and more is to come."""
        if self._progress is None:
            return
        at = time.monotonic()
        if last or at - self._told_at >= self.EVERY:
            self._told_at = at
            self._progress.update(self._stage, self._total, self._done, self._cached, self._failed, amount(self._nano))
