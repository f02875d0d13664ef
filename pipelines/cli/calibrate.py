"""The command that measures rules by posts that people labelled."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import terminal
from pipelines.cli.app import JUDGE, app
from pipelines.cli.terminal import AsJson
from pipelines.errors import RequestError
from pipelines.settings import home, load


@app.command(rich_help_panel=JUDGE)
def calibrate(
    stage: Annotated[
        str,
        typer.Argument(
            help="Rules: personal_data, risk, minors or relevance; or what people judge: coe, cer or compare."
        ),
    ],
    gold: Annotated[
        Path | None, typer.Option(help="Of rules: posts that people labelled, JSON lines (docs/calibrating.md).")
    ] = None,
    judge: Annotated[
        Path | None, typer.Option(help="Of what people judge: a model's answers, held against theirs, JSON lines.")
    ] = None,
    people: Annotated[str, typer.Option(help="Who labelled: experts, skilled or crowd.")] = "experts",
    show: Annotated[
        int, typer.Option(min=0, help="Show so many false alarms and as many misses, with their words: for you alone.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure how well rules find what people labelled, or whether a model may stand in for people."""
    from pipelines.cli import render as display
    from pipelines.operations.calibrate.measuring import calibrate as measure

    if (gold is None) == (judge is None):
        raise RequestError("one thing is measured at a time", hint="--gold FILE for rules, or --judge FILE for a model")
    if judge is not None:
        from pipelines.operations.calibrate.judges import calibrate_judge

        tests = calibrate_judge(home(), stage, judge, people)
        terminal.put(display.as_json(tests.to_dicts()) if as_json else display.judge_tests(tests))
        return
    assert gold is not None
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
