"""Commands about people's judgements: what goes out to them, what comes back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.cli import terminal
from pipelines.cli.app import app
from pipelines.cli.terminal import AsJson
from pipelines.settings import home, load

if TYPE_CHECKING:
    from pipelines.operations.review.importing import Imported

review_app = typer.Typer(
    no_args_is_help=True, help="What people judge: tasks for them, their labels (docs/reviewing.md)."
)
app.add_typer(review_app, name="review")

Kind = Annotated[str, typer.Argument(help="coe, cer, rank or compare.")]


@review_app.command("export")
def export_(
    kind: Kind,
    annotators: Annotated[str, typer.Option(metavar="NAME,NAME,…", help="Who is asked.")],
    third: Annotated[
        bool, typer.Option("--third", help="Of cer: what two people differ on, to a third person each.")
    ] = False,
    size: Annotated[int | None, typer.Option(min=1, help="How many items (default: all; of chains 200, E).")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A new folder (default: one in the home).")] = None,
    questions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of rank and compare: questions with models' answers.")
    ] = None,
    sheet: Annotated[bool, typer.Option("--sheet", help="A spreadsheet for each person as well.")] = False,
    page: Annotated[bool, typer.Option("--page", help="A page for a browser without a network as well.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the tasks of each person that have no label yet, a file of JSON lines a person."""
    from pipelines.cli import render as display
    from pipelines.operations.review.exporting import export, task_file
    from pipelines.operations.review.people import people

    names = annotators.split(",")
    options = {"third": third, "size": size, "out": out, "questions": questions, "sheet": sheet, "page": page}
    exported = export(home(), load(home()), kind, names, **options)  # type: ignore[arg-type]
    files = {one: str(task_file(exported.folder, one)) for one in exported.tasks}
    if as_json:
        record = {
            "folder": str(exported.folder),
            "files": files,
            "tasks": exported.tasks,
            "left_out": exported.left_out,
        }
        terminal.put(display.as_json(record))
        return
    called = people(home())
    for one, count in exported.tasks.items():
        terminal.line(f"{called[one]}: {count:,} tasks in {files[one]}")
    if exported.left_out:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(exported.left_out.items()))
        terminal.line(f"left out: {reasons}")
    terminal.line(f"back with their labels: gongqing review import {kind} FILE…")


@review_app.command("import")
def import_(
    kind: Kind,
    files: Annotated[list[Path], typer.Argument(help="Labels: JSON lines, or spreadsheets that went out (.xlsx).")],
    as_json: AsJson = False,
) -> None:
    """Take labels into the tables: all of them, or none, with everything that is wrong with them."""
    from pipelines.cli import render as display
    from pipelines.operations.review.importing import import_labels

    imported = import_labels(home(), kind, files)
    if as_json:
        versions = [display.version_record(version) for version in imported.versions]
        terminal.put(display.as_json({"new": imported.new, "known": imported.known, "versions": versions}))
        return
    _say(imported)


@review_app.command()
def push(kind: Kind) -> None:
    """Give the tasks that went out and have no label to Potato, where a team labels (`make review` serves it)."""
    from pipelines.operations.review import team

    pushed, passwords = team.push(home(), kind)
    terminal.line(f"{pushed.new:,} new tasks, {pushed.known:,} that were there already; make review serves them")
    for who, password in passwords.items():
        terminal.line(f"password of {who}, shown this once: {password}")


@review_app.command()
def pull(kind: Kind) -> None:
    """Take what the team has said so far into the tables: all of it, or none, with everything that is wrong with it."""
    from pipelines.operations.review import team

    imported, refused = team.pull(home(), kind)
    _say(imported)
    for one in refused:
        terminal.line(f"not taken: {one}")


def _say(imported: "Imported") -> None:
    from pipelines.cli import render as display

    terminal.line(f"{imported.new:,} new labels, {imported.known:,} that were there already")
    for version in imported.versions:
        terminal.line(display.made(version))


@review_app.command()
def agreement(kind: Kind, as_json: AsJson = False) -> None:
    """How far people agree, by question and by person, with intervals; and how long they take."""
    from pipelines.cli import render as display
    from pipelines.operations.review.agreeing import agreement_of

    figures, pace = agreement_of(home(), kind)
    if as_json:
        terminal.put(display.as_json({"agreement": figures.to_dicts(), "pace": pace.to_dicts()}))
    elif figures.is_empty():
        terminal.line(f"nobody has labelled anything yet: gongqing review export {kind}")
    else:
        terminal.put(display.agreement(figures, pace))
