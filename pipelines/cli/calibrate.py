"""The command that measures rules by posts that people labelled."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import terminal
from pipelines.cli.app import app
from pipelines.cli.terminal import AsJson
from pipelines.errors import RequestError
from pipelines.settings import home, load


@app.command()
def calibrate(
    stage: Annotated[str, typer.Argument(help="The rules to measure: personal_data, risk, minors or relevance.")],
    gold: Annotated[Path, typer.Option(help="Posts that people labelled, JSON lines (docs/calibrating.md).")],
    show: Annotated[
        int, typer.Option(min=0, help="Show so many false alarms and as many misses, with their words: for you alone.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure how well rules find what people labelled, for the card and the floors of a release."""
    from pipelines.cli import render as display
    from pipelines.operations.calibrate.calibrating import calibrate as measure

    if show and as_json:
        raise RequestError("--show is for a terminal", hint="leave out --json: its figures are those of the table")
    with terminal.working(f"reading {gold.name}"):
        rows, mistakes = measure(home(), stage, gold, load(home()))
    if as_json:
        terminal.put(display.as_json(rows.to_dicts()))
        return
    terminal.put(display.calibration(rows))
    if show:
        terminal.put(display.mistakes(mistakes, show))
