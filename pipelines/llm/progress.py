"""How far a stage is with its questions, told to whoever shows it."""

import time
from decimal import Decimal
from typing import Protocol


class Progress(Protocol):
    """Is told where a stage stands."""

    def update(self, stage: str, total: int, done: int, cached: int, failed: int, spent: Decimal) -> None:
        """Of `total` questions `done` have a reply, `cached` of them without a call, `failed` of them without a value.

        `spent` is what the calls of this run have cost.
        """


class Told:
    """Counts the replies of a stage and tells `progress` of them, at most ten times a second, and at the end."""

    EVERY = 0.1  # seconds

    def __init__(self, progress: Progress | None, stage: str, total: int) -> None:
        self._progress, self._stage, self._total = progress, stage, total
        self._done = self._cached = self._failed = 0
        self._told_at = float("-inf")

    def reply(self, *, cached: bool, failed: bool, spent: Decimal = Decimal(0)) -> None:
        """One more question has its reply."""
        self._done += 1
        self._cached += cached
        self._failed += failed
        self.now(spent, last=self._done == self._total)

    def now(self, spent: Decimal = Decimal(0), *, last: bool = True) -> None:
        """Tells where things stand."""
        if self._progress is None:
            return
        at = time.monotonic()
        if last or at - self._told_at >= self.EVERY:
            self._told_at = at
            self._progress.update(self._stage, self._total, self._done, self._cached, self._failed, spent)
