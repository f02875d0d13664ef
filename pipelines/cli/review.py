"""Commands about people's judgements: what goes out to them, what comes back."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import terminal
from pipelines.cli.app import app
from pipelines.cli.terminal import AsJson
from pipelines.settings import home, load

review_app = typer.Typer(
    no_args_is_help=True, help="What people judge: tasks for them, their labels (docs/reviewing.md)."
)
app.add_typer(review_app, name="review")

Kind = Annotated[str, typer.Argument(help="coe, cer, rank or compare.")]


@review_app.command("export")
def export_(
    kind: Kind,
    annotators: Annotated[str, typer.Option(metavar="NAME,NAME,…", help="Who is asked.")],
    size: Annotated[int | None, typer.Option(min=1, help="How many items (default: all; of chains 200, E).")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A new folder (default: one in the home).")] = None,
    questions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of rank and compare: questions with models' answers.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the tasks of each person that have no label yet, a file of JSON lines a person."""
    from pipelines.cli import render as display
    from pipelines.operations.review.exporting import export, task_file
    from pipelines.operations.review.people import people
    from pipelines.review.assigning import assign

    names = annotators.split(",")
    exported = export(home(), load(home()), kind, names, assign, size=size, out=out, questions=questions)
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
    files: Annotated[list[Path], typer.Argument(help="Labels, JSON lines.")],
    as_json: AsJson = False,
) -> None:
    """Take labels into the tables: all of them, or none, with everything that is wrong with them."""
    from pipelines.cli import render as display
    from pipelines.operations.review.importing import import_labels
    from pipelines.review.consensus import consensus

    imported = import_labels(home(), kind, files, consensus)
    if as_json:
        versions = [display.version_record(version) for version in imported.versions]
        terminal.put(display.as_json({"new": imported.new, "known": imported.known, "versions": versions}))
        return
    terminal.line(f"{imported.new:,} new labels, {imported.known:,} that were there already")
    for version in imported.versions:
        terminal.line(display.made(version))
