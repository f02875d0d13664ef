"""The commands' frame: the groups of commands, the options of all, and how errors end."""

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from crawlers.errors import CrawlError
from pipelines.cli import terminal
from pipelines.core import modes
from pipelines.core.files import storage_error
from pipelines.errors import GongqingError, Interrupted, RequestError
from pipelines.settings import home

app = typer.Typer(
    name="gongqing",
    epilog="Example: gongqing demo",
    help="From public help-seeking posts and dialogues to data that trains an empathetic Chinese model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
# The panels of its help.
MAKE, LOOK, JUDGE, GIVE, TRAIN = "Get and make data", "Look", "Judge", "Give away, and take back", "Train"

tables_app = typer.Typer(
    invoke_without_command=True,
    help="The tables there are, and which version is current.",
    epilog="Example: gongqing tables --versions",
)
app.add_typer(tables_app, name="tables", rich_help_panel=LOOK)
ledger_app = typer.Typer(
    invoke_without_command=True,
    help="What was asked of models, and what it cost.",
    epilog="Example: gongqing ledger --open",
)
app.add_typer(ledger_app, name="ledger", rich_help_panel=LOOK)
releases_app = typer.Typer(
    invoke_without_command=True,
    help="The releases there are, and which one is current.",
    epilog="Example: gongqing releases --json",
)
app.add_typer(releases_app, name="releases", rich_help_panel=GIVE)
export_app = typer.Typer(
    no_args_is_help=True,
    help="Give a release away: what of it may be published.",
    epilog="Example: gongqing export folder out/v1",
)
app.add_typer(export_app, name="export", rich_help_panel=GIVE)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gongqing {version('gongqing')}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    _: Annotated[bool, typer.Option("--version", help="Its version.", callback=_say_version, is_eager=True)] = False,
) -> None:
    """Options of every command."""
    if home().exists() and not home().is_dir():
        raise RequestError("the home is a file", where=home(), hint="set GONGQING_HOME to a folder")
    if context.invoked_subcommand != "doctor":  # which changes nothing, and names what others may read
        modes.close(home())
    if debug:
        os.environ["_GONGQING_DEBUG"] = "1"


def main() -> None:
    """Entry point: an error of ours is a message and an exit code; a traceback only with --debug."""
    modes.keep_private()
    try:
        app()
    except SystemExit as end:
        if end.code == Interrupted.exit_code:  # Ctrl-C, of which typer says nothing
            terminal.error(Interrupted())
        raise
    except (GongqingError, CrawlError) as error:  # crawlers know nothing of ours, and have errors of the same form
        if "_GONGQING_DEBUG" in os.environ:
            raise
        terminal.error(error)
        sys.exit(error.exit_code)
    except Exception as error:
        if "_GONGQING_DEBUG" in os.environ:
            raise
        ours = storage_error(error, home())
        message = ours or f"{type(error).__name__}: {error}\n  hint: run again with --debug and report it"
        terminal.error(message)
        sys.exit(1)
