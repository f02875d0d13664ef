"""Progress as lines of a log: of a stage's questions, of an upload."""

import time
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")

_EVERY = 5.0  # seconds between two lines


class Lines:
    """Lines about the questions of a stage, some seconds apart: figures, never a text."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._stage = ""
        self._said_at = self._since = 0.0
        self._before = 0  # replies that were there when the first call was made

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def over(self, outcomes: Iterable[T], total: int) -> Iterator[T]:  # noqa: ARG002 - of the protocol
        """The outcomes: whoever goes through them tells of each."""
        yield from outcomes

    def update(self, stage: str, total: int, done: int, cached: int, failed: int, spent: Decimal) -> None:
        """Says where a stage stands, now and then, and at its end where anything was called."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._said_at = stage, now
        if done == cached:
            self._since, self._before = now, done
        if (done == total and done > cached) or now - self._said_at >= _EVERY:
            self._said_at = now
            called = done - self._before
            left = f", {_spoken((total - done) * (now - self._since) / called)} left" if called and done < total else ""
            self._say(
                f"{stage}: {done:,} of {total:,} done, {cached:,} of them without a call, {failed:,} failed, "
                f"spent {spent:.4f}{left}"
            )

    def moved(self, what: str, done: int, total: int) -> None:
        """Says how far an upload or a download is, now and then, and at its end."""
        now = time.monotonic()
        if done == total or now - self._said_at >= _EVERY:
            self._said_at = now
            self._say(f"{what}: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB")


def _spoken(seconds: float) -> str:
    """The greatest unit of a time, rounded: 40 s, 12 min, 3 h."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
