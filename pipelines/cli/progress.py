"""Progress of a refresh, of a stage's questions, of an upload: bars on a terminal, lines in a log and elsewhere."""

from decimal import Decimal
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class Bars:
    """Two bars: stages, and below it the questions of the stage at work, with what they have cost and the time left."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._questions: tuple[str, TaskID] | None = None
        self._moving: TaskID | None = None
        self._stages: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.__exit__(kind, error, trace)

    def advance(self, done: int, total: int) -> None:
        """Moves the bar of stages."""
        if self._stages is None:
            self._stages = self._progress.add_task("refresh", total=total, counts="")
        self._progress.update(self._stages, completed=done)

    def update(self, stage: str, total: int, done: int, cached: int, failed: int, spent: Decimal) -> None:
        """Moves the bar of a stage's questions; a new stage takes the place of the one before."""
        if self._questions is None or self._questions[0] != stage:
            if self._questions is not None:
                self._progress.remove_task(self._questions[1])
            self._questions = (stage, self._progress.add_task(stage, total=total, counts=""))
        counts = f"{cached:,} without a call, {failed:,} failed, spent {spent:.2f}"
        self._progress.update(self._questions[1], completed=done, total=total, counts=counts)

    def moved(self, what: str, done: int, total: int) -> None:
        """Moves the bar of an upload or a download, in kilobytes."""
        if self._moving is None:
            self._moving = self._progress.add_task(what, total=total // 1000, counts="kB")
        self._progress.update(self._moving, completed=done // 1000, total=total // 1000)
