"""Progress of a refresh on a terminal: a bar of its stages, and one of the questions that a stage asks."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from types import TracebackType
from typing import Protocol, Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

T = TypeVar("T")


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


class Silence:
    """Off a terminal: the lines of the command tell enough."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def over(self, outcomes: Iterable[T], total: int) -> Iterator[T]:  # noqa: ARG002 - of the protocol
        """The outcomes."""
        yield from outcomes

    def update(self, stage: str, total: int, done: int, cached: int, failed: int, spent: Decimal) -> None:
        """Says nothing."""


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
