"""How far a stage is with its questions, or an upload with its bytes."""

import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Protocol, Self

from pipelines.llm.money import amount
from pipelines.llm.questions import Reply

_EVERY = 5.0  # seconds between two lines


class Progress(Protocol):
    """Shows where a stage stands."""

    def update(self, stage: str, total: int, done: int, cached: int, failed: int, spent: Decimal) -> None:
        """Of `total` questions `done` have a reply, `cached` of them without a call, `failed` of them without a value;
        the calls have cost `spent`.
        """


class Tally:
    """Counts a stage's replies and money, and reports them, at most ten times a second, and at the end."""

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


class Lines:
    """Lines about the questions of a stage, some seconds apart: figures, never a text."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._stage = ""
        self._logged_at = self._since = 0.0
        self._before = 0  # replies that were there when the first call was made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def advance(self, done: int, total: int) -> None:
        """Of `total` stages `done` are done: their questions are logged."""

    def update(self, stage: str, total: int, done: int, cached: int, failed: int, spent: Decimal) -> None:
        """Logs where a stage stands, now and then, and at its end where anything was called."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._logged_at = stage, now
        if done == cached:
            self._since, self._before = now, done
        if (done == total and done > cached) or now - self._logged_at >= _EVERY:
            self._logged_at = now
            called = done - self._before
            rest = (total - done) * (now - self._since) / called if called and done < total else 0.0
            left = f", {_duration(rest)} left" if rest else ""
            self._log(
                f"{stage}: {done:,} of {total:,} done, {cached:,} of them without a call, {failed:,} failed, "
                f"spent {spent:.4f}{left}"
            )

    def moved(self, what: str, done: int, total: int) -> None:
        """Logs how far an upload or a download is, now and then, and at its end."""
        now = time.monotonic()
        if done == total or now - self._logged_at >= _EVERY:
            self._logged_at = now
            self._log(f"{what}: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB")


def _duration(seconds: float) -> str:
    """The greatest unit of a time, rounded: 40 s, 12 min, 3 h."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
