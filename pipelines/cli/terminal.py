"""What commands share: the home's store and ledger, and how output looks on a terminal and off one."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Annotated, Any

import typer

from pipelines.core.home import Home
from pipelines.settings import home

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


def working(what: str) -> AbstractContextManager[Any]:
    """A sign of life on a terminal while something of unknown length goes on."""
    return console().status(what) if sys.stdout.isatty() else nullcontext()


def progress() -> Any:
    """Progress: bars on a terminal, lines elsewhere."""
    from pipelines.cli.render import Bars
    from pipelines.llm.progress import Lines

    return Bars(console()) if sys.stdout.isatty() else Lines(line)
