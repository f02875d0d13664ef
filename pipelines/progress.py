"""Progress of a refresh, of a stage's questions, of an upload: bars on a terminal, lines in a log and elsewhere."""

import time
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from types import TracebackType
from typing import Protocol, Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

T = TypeVar("T")

_EVERY = 5.0  # seconds between two lines


class Shown(Protocol):
    """Whatever shows progress: told of questions (`pipelines.llm.progress.Progress`), and of stages."""

    def __enter__(self) -> Self:
        """Begins to show."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Shows no more."""

    def over(self, outcomes: Iterable[T], total: int) -> Iterator[T]:
        """The outcomes of `total` stages as they come."""

    def update(self, stage: str, total: int, done: int, cached: int, failed: int, spent: Decimal) -> None:
        """Where the questions of a stage stand."""

    def moved(self, what: str, done: int, total: int) -> None:
        """How many bytes of an upload or a download have arrived."""


class Bars:
    """Two bars: stages, and below it the questions of the stage at work, with what they have cost and the time left."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._questions: tuple[str, TaskID] | None = None
        self._moving: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.__exit__(kind, error, trace)

    def over(self, outcomes: Iterable[T], total: int) -> Iterator[T]:
        """The outcomes of `total` stages as they come, a step each."""
        stages = self._progress.add_task("refresh", total=total, told="")
        for outcome in outcomes:
            self._progress.advance(stages)
            yield outcome

    def update(self, stage: str, total: int, done: int, cached: int, failed: int, spent: Decimal) -> None:
        """Moves the bar of a stage's questions; a new stage takes the place of the one before."""
        if self._questions is None or self._questions[0] != stage:
            if self._questions is not None:
                self._progress.remove_task(self._questions[1])
            self._questions = (stage, self._progress.add_task(stage, total=total, told=""))
        told = f"{cached:,} without a call, {failed:,} failed, spent {spent:.2f}"
        self._progress.update(self._questions[1], completed=done, total=total, told=told)

    def moved(self, what: str, done: int, total: int) -> None:
        """Moves the bar of an upload or a download, in kilobytes."""
        if self._moving is None:
            self._moving = self._progress.add_task(what, total=total // 1000, told="kB")
        self._progress.update(self._moving, completed=done // 1000, total=total // 1000)


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
