"""Commands about people's judgements: what goes out to them, what comes back, and what is measured by it."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.cli import terminal
from pipelines.cli.app import JUDGE, app
from pipelines.cli.terminal import AsJson
from pipelines.errors import RequestError
from pipelines.settings import home, load

if TYPE_CHECKING:
    from pipelines.operations.review.importing import Imported

review_app = typer.Typer(
    no_args_is_help=True,
    epilog="Example: gongqing review agreement cer",
    help="What people judge: tasks for them, their labels (docs/reviewing.md).",
)
app.add_typer(review_app, name="review", rich_help_panel=JUDGE)

Kind = Annotated[str, typer.Argument(help="coe, cer, rank or compare.")]
Annotators = Annotated[str, typer.Option(metavar="NAME,NAME,…", help="Who is asked.")]


@review_app.command("export", epilog="Example: gongqing review export cer --annotators 甲,乙,丙")
def export_(
    kind: Kind,
    annotators: Annotators,
    third: Annotated[
        bool, typer.Option("--third", help="Of cer: what two people differ on, to a third person each.")
    ] = False,
    size: Annotated[int | None, typer.Option(min=1, help="How many items (default: all; of chains 200, E).")] = None,
    each: Annotated[int, typer.Option(min=1, help="Of coe: how many people review each chain.")] = 1,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A new folder (default: one in the home).")] = None,
    questions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of rank and compare: questions with models' answers.")
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Items with known answers, to practise on and to mix in.")
    ] = None,
    suggestions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What a model answers: shown with new tasks, and marked.")
    ] = None,
    sheet: Annotated[bool, typer.Option("--sheet", help="A spreadsheet for each person as well.")] = False,
    page: Annotated[bool, typer.Option("--page", help="A page for a browser without a network as well.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the tasks of each person that have no label yet, a file of JSON lines a person."""
    from pipelines.cli import render as display
    from pipelines.operations.review.exporting import ExportOptions, export, task_file
    from pipelines.operations.review.people import people

    options = ExportOptions(third, size, each, questions, gold, suggestions, sheet, page)
    exported = export(home(), load(home()), kind, _names(annotators), options, out)
    files = {one: str(task_file(exported.folder, one)) for one in exported.tasks}
    if as_json:
        record = {
            "folder": str(exported.folder),
            "files": files,
            "tasks": exported.tasks,
            "others": exported.others,
            "in_one_round": exported.in_one_round,
            "left_out": exported.left_out,
        }
        terminal.put(display.as_json(record))
        return
    called = people(home())
    for one, count in exported.tasks.items():
        terminal.line(f"{called[one]}: {count:,} tasks in {files[one]}")
    for one, count in exported.others.items():
        terminal.line(f"{called[one]}: {count:,} new tasks, in no file yet: export for them as well")
    if exported.in_one_round:
        terminal.line(
            f"{exported.in_one_round:,} votes are of people who see two candidates of one round, and so which reply "
            "these share; with four people or more nobody does"
        )
    if exported.left_out:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(exported.left_out.items()))
        terminal.line(f"left out: {reasons}")
    terminal.line(f"back with their labels: gongqing review import {kind} FILE…")


@review_app.command(epilog="Example: gongqing review withdraw cer --annotators 丙")
def withdraw(kind: Kind, annotators: Annotators) -> None:
    """Take back the tasks of somebody who leaves that have no label: the next export gives them to others."""
    from pipelines.operations.review.exporting import withdraw as take_back

    count = take_back(home(), kind, _names(annotators))
    terminal.line(f"{count:,} tasks taken back; labels of them are refused from now on. gongqing review push {kind}")


@review_app.command("import", epilog="Example: gongqing review import cer labels-1.jsonl labels-2.jsonl")
def import_(
    kind: Kind,
    files: Annotated[list[Path], typer.Argument(help="Labels: JSON lines, or spreadsheets that went out (.xlsx).")],
    replace: Annotated[
        bool, typer.Option("--replace", help="They take the place of earlier labels, whenever these were given.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take labels into the tables: all of them, or none, with everything that is wrong with them."""
    from pipelines.cli import render as display
    from pipelines.operations.review.importing import import_labels

    imported = import_labels(home(), kind, files, replacing=replace)
    if as_json:
        record = {
            "new": imported.new,
            "replaced": imported.replaced,
            "known": imported.known,
            "empty": [str(path) for path in imported.empty],
            "versions": [display.version_record(version) for version in imported.versions],
        }
        terminal.put(display.as_json(record))
        return
    _say(imported)


@review_app.command(epilog="Example: gongqing review push cer --to potato")
def push(
    kind: Kind,
    to: Annotated[str, typer.Option(help="potato, or label-studio: a server a person (make label-studio).")] = "potato",
) -> None:
    """Make the server of a team ask what went out and has no label, and nothing else (`make review` serves Potato)."""
    from pipelines.operations.review import team

    pushed = team.push(home(), kind, to)
    withdrawn = f", {pushed.withdrawn:,} taken back" if pushed.withdrawn else ""
    terminal.line(f"{pushed.new:,} new tasks, {pushed.known:,} that were there{withdrawn}")
    for who, password in pushed.passwords.items():
        terminal.line(f"password of {who}, shown this once: {password}")
    for who in pushed.without:
        terminal.line(f"{who} has tasks and no server: make label-studio WHO={who}")


@review_app.command(epilog="Example: gongqing review pull cer --from potato")
def pull(
    kind: Kind, source: Annotated[str, typer.Option("--from", help="potato, or label-studio.")] = "potato"
) -> None:
    """Take the team's answers so far into the tables: what is right, and everything that is wrong with the rest."""
    from pipelines.operations.review import team

    imported, refused = team.pull(home(), kind, source)
    _say(imported)
    for one in refused:
        terminal.line(f"not taken: {one}")


def _names(listed: str) -> list[str]:
    """Names that somebody typed, on a Chinese keyboard or another."""
    return re.split("[,，、;；]", listed)


def _say(imported: "Imported") -> None:
    from pipelines.cli import render as display

    replaced = f" ({imported.replaced:,} in the place of earlier ones)" if imported.replaced else ""
    terminal.line(f"{imported.new:,} new labels{replaced}, {imported.known:,} that were there already")
    for path in imported.empty:
        terminal.line(f"nothing is answered yet in {path}")
    for version in imported.versions:
        terminal.line(display.made(version))


@review_app.command(epilog="Example: gongqing review agreement cer")
def agreement(kind: Kind, as_json: AsJson = False) -> None:
    """How far people agree, by question and person, with intervals; how each answers what is known, and how fast."""
    from pipelines.cli import render as display
    from pipelines.operations.review.people import agreement_of

    figures, work = agreement_of(home(), kind)
    if as_json:
        terminal.put(display.as_json({"agreement": figures.to_dicts(), "people": work.to_dicts()}))
    elif figures.is_empty():
        terminal.line(f"nobody has labelled anything yet: gongqing review export {kind}")
    else:
        terminal.put(display.agreement(figures, work))


@app.command(rich_help_panel=JUDGE, epilog="Example: gongqing calibrate risk --gold samples/gold.jsonl")
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
