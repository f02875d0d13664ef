"""What commands share: the home's store and ledger, and how output looks on a terminal and off one."""

import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from decimal import Decimal
from typing import Annotated, Any, Self

import typer

from pipelines.core.home import Home
from pipelines.settings import home

# What stands before the lines of an error.
_LABEL = re.compile(r"(gongqing: | *(?:where|hint): | *)(.*)")
_STYLES = {"gongqing:": "bold red", "where:": "bold", "hint:": "bold green"}

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@contextmanager
def ledger() -> Iterator[Any]:
    """The ledger of the home; None where no model was asked yet: a look creates no file."""
    from pipelines.llm.ledger.ledger import Ledger

    path = Home(home()).ledger
    if not path.exists():
        yield None
        return
    with Ledger(path) as book:
        yield book


def store() -> Any:
    """The store of the home."""
    from pipelines.store.store import Store

    return Store(Home(home()).data)


def console() -> Any:
    """Where tables are drawn."""
    from rich.console import Console

    # Off a terminal there is no width to keep to; 200 is as wide as a reader of a log can bear.
    return Console() if sys.stdout.isatty() else Console(width=200)


def put(what: Any) -> None:
    """Print a table, or a text as it is."""
    if isinstance(what, str):
        line(what)
    else:
        console().print(what)


def line(what: str) -> None:
    """Print a line, at once."""
    sys.stdout.write(what + "\n")
    sys.stdout.flush()


def error(what: object) -> None:
    """Print what went wrong: on a terminal in colour, in lines that fit."""
    from rich.console import Console
    from rich.text import Text

    from pipelines.cli.wrapping import wrapped

    shown = Console(stderr=True)
    message = f"gongqing: {what}"
    if not shown.is_terminal:
        sys.stderr.write(message + "\n")
        return
    for one in message.splitlines():
        label, rest = _LABEL.fullmatch(one).groups()  # type: ignore[union-attr]  # it matches any line
        lines = f"\n{' ' * len(label)}".join(wrapped(rest, shown.width - len(label)))
        shown.print(Text.assemble((label, _STYLES.get(label.strip(), "")), lines), soft_wrap=True)


def working(what: str) -> AbstractContextManager[Any]:
    """A sign of life on a terminal while something of unknown length goes on."""
    return console().status(what) if sys.stdout.isatty() else nullcontext()


def progress() -> Any:
    """Progress: bars on a terminal, lines elsewhere."""
    from pipelines.llm.progress import Lines

    return Bars(console()) if sys.stdout.isatty() else Lines(line)


class Bars:
    """Two bars: stages, and below it the questions of the stage at work, with what they have cost and the time left."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        rest = (TextColumn("{task.fields[counts]}"), TimeRemainingColumn())
        self._progress = Progress(*columns, *rest, console=console, transient=True)
        self._questions: tuple[str, Any] | None = None
        self._moving: Any = None
        self._stages: Any = None

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._progress.__exit__(*error)

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
