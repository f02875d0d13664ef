"""Commands that look at tables: tables, show, diff, why, stats."""

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.cli import terminal
from pipelines.cli.app import LOOK, app, tables_app
from pipelines.cli.terminal import AsJson
from pipelines.core.home import Home
from pipelines.errors import RequestError, StoreError, UnknownName
from pipelines.settings import home, load

if TYPE_CHECKING:
    from pipelines.store.store import Version

TableName = Annotated[str, typer.Argument(help="A table, such as unique_posts.")]
Partition = Annotated[str | None, typer.Option(help="The data set, or the run, of a partitioned table.")]


@tables_app.callback()
def tables(
    context: typer.Context,
    as_json: AsJson = False,
    versions: Annotated[bool, typer.Option("--versions", help="All versions, not the current ones alone.")] = False,
) -> None:
    """List the tables."""
    if context.invoked_subcommand is None:
        list_tables(home(), as_json=as_json, all_versions=versions)


def list_tables(folder: Path, *, as_json: bool = False, all_versions: bool = False) -> None:
    """Print the current versions of a home and their states, or all versions."""
    from pipelines.cli import render as display
    from pipelines.flow.refresh import states
    from pipelines.store.store import Store
    from schemas.tables import TABLES

    store = Store(Home(folder).data)
    listed: list[Version] = []
    damaged: dict[tuple[str, str | None], StoreError] = {}
    for table, place in [(name, place) for name in TABLES for place in store.places(name)]:
        try:
            current = [store.version(table, partition=place)] if store.pointer(table, place) is not None else []
            listed += store.versions(table, place) if all_versions else current
        except StoreError as error:
            damaged[table, place] = error
    if as_json:
        records = [display.version_record(version) for version in listed]
        records += [display.damaged_record(*place, error) for place, error in damaged.items()]
        terminal.put(display.as_json(records))
    elif listed or damaged:
        known = {} if all_versions else states(store, load(folder))
        terminal.put(display.versions(listed, damaged, known, all_versions=all_versions))
    else:
        terminal.line("no tables yet: gongqing import NAME PATH, then gongqing refresh; or gongqing demo")
    errors = list(damaged.values())
    for other in errors[1:]:
        terminal.error(other)
    if errors:
        raise errors[0]


@tables_app.command(epilog="Example: gongqing tables promote splits 3f9c02")
def promote(
    table: TableName,
    version: Annotated[str, typer.Argument(help="The version, or the beginning of it.")],
    partition: Partition = None,
) -> None:
    """Make an older version the current one, until something upstream of the table changes."""
    promoted = terminal.store().promote(table, version, partition)
    terminal.line(f"{promoted.name}: version {promoted.version} is current")


@tables_app.command(epilog="Example: gongqing tables prune --dry-run")
def prune(
    keep: Annotated[int, typer.Option(min=1, help="The newest versions to keep of each table or partition.")] = 3,
    runs: Annotated[
        int | None,
        typer.Option(min=1, help="Also Dagster's runs of so many days ago, but for the latest of each table."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list them.")] = False,
) -> None:
    """Remove old versions that nothing needs: no release pins them, and no current table was made from them."""
    from pipelines.operations import prune as pruning

    if dry_run:
        listed = [(version, 0) for version in pruning.unneeded(home(), keep)]
        what = "would go; nothing was removed"
    else:
        listed = list(pruning.prune(home(), keep))
        what = f"removed, {sum(freed for _, freed in listed) / 1e6:,.1f} MB free"
    for version, _ in listed:
        terminal.line(f"{version.name}@{version.version}  {version.rows:,} rows")
    terminal.line(f"{len(listed):,} versions {what}")
    if runs is not None:
        _prune_runs(dt.timedelta(days=runs), dry_run=dry_run)


def _prune_runs(age: dt.timedelta, *, dry_run: bool) -> None:
    from pipelines.defs.instance import instance
    from pipelines.defs.retention import delete_runs, old_runs

    with instance(home()) as standing:
        old = old_runs(standing, dt.datetime.now(dt.UTC) - age)
        gone = old if dry_run else list(delete_runs(standing, old))
    terminal.line(f"{len(gone):,} runs of Dagster {'would go' if dry_run else 'removed'}")


@app.command(rich_help_panel=LOOK, epilog="Example: gongqing show clean_posts --dropped -n 3")
def show(
    table: TableName,
    n: Annotated[int, typer.Option("-n", min=1, help="How many rows.")] = 5,
    version: Annotated[str | None, typer.Option(help="An older version, or the beginning of it.")] = None,
    partition: Partition = None,
    ids: Annotated[
        list[str] | None, typer.Option("--id", help="Only what this id names, or a part of it; may be given again.")
    ] = None,
    where: Annotated[str | None, typer.Option(help="Only rows that meet it, as \"lang = 'zh'\" (SQL).")] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Drawn, and not the first: the same ones each time.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Draw others: a sample of another seed (default: 0).")] = None,
    dropped: Annotated[
        bool, typer.Option("--dropped", help="The rows that were dropped, with reasons and texts.")
    ] = False,
    changed: Annotated[
        bool, typer.Option("--changed", help="What cleaning took for personal data, in context: raw texts.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """A look at the rows of a table."""
    from pipelines.cli import render
    from pipelines.cli import rows as display

    store = terminal.store()
    if changed:
        from pipelines.operations.replaced import replaced

        if version or partition or dropped or ids or where or sample or seed is not None:
            raise RequestError("--changed reads the raw texts of today", hint="leave out all but -n and --json")
        found = replaced(store, table, n, load(home()))
        terminal.put(render.as_json(found) if as_json else display.replaced(found))
        return
    from pipelines.operations.look import dialogues_of, rows_to_show

    rows = rows_to_show(
        store, table, n, version, partition,
        dropped=dropped, ids=ids or (), where=where, sample=sample or seed is not None, seed=seed or 0,
    )  # fmt: skip
    if as_json:
        terminal.put(render.as_json(rows.to_dicts()))
        return
    dialogues, width = ({} if dropped else dialogues_of(store, rows)), terminal.console().width
    for values in rows.iter_rows(named=True):
        dialogue = dialogues.get((values.get("dialogue_id", ""), values.get("round", 0)))
        terminal.put(display.row("dropped" if dropped else table, values, dialogue, width))
    if rows.is_empty():
        terminal.line(f"{table} has no {'dropped ' if dropped else ''}{'such ' if ids or where else ''}rows")


@app.command(rich_help_panel=LOOK, epilog="Example: gongqing diff unique_posts 3f9c02 81ab47")
def diff(
    table: Annotated[str, typer.Argument(help="A table, such as unique_posts; or the release before.")],
    v1: Annotated[str, typer.Argument(help="The version before, or the beginning of it; or the release after.")],
    v2: Annotated[str | None, typer.Argument(help="The version after; of two releases nothing.")] = None,
    partition: Partition = None,
    as_json: AsJson = False,
) -> None:
    """What changed between two versions of a table, by the key of its rows; or between two releases, as Markdown."""
    from pipelines.cli import render as display
    from pipelines.cli import rows
    from pipelines.release.changes import changes as compare
    from pipelines.release.changes import markdown
    from schemas.tables import TABLES

    if v2 is None:
        changed = compare(home(), table, v1)
        terminal.put(display.as_json(changed.as_dict()) if as_json else markdown(changed).rstrip())
        return
    store = terminal.store()
    changes = store.diff(table, v1, v2, partition)
    key = TABLES[table].key()
    if as_json:
        added, removed = (frame.select(key).to_dicts() for frame in (changes.added, changes.removed))
        record = {"added": added, "removed": removed, "changed": changes.changed.to_dicts()}
        terminal.put(display.as_json(record))
        return
    console = terminal.console()
    for sign, frame in (("+", changes.added), ("-", changes.removed)):
        rows.changed_keys(frame, key, console, sign)
    shown = changes.changed.select(key)
    before, after = (
        store.read(table, one, partition).join(shown.lazy(), on=key, how="semi").collect() for one in (v1, v2)
    )
    rows.changed_rows(changes.changed, before, after, key, console)
    terminal.line(
        f"{changes.added.height:,} added, {changes.removed.height:,} removed, {changes.changed.height:,} changed"
    )


@app.command(rich_help_panel=LOOK, epilog="Example: gongqing why sample:p083")
def why(
    row_id: Annotated[str, typer.Argument(help="A post, an answer, a dialogue or a round.")], as_json: AsJson = False
) -> None:
    """The life of one row through every stage: when, why, its texts, and what was asked of models for it."""
    from pipelines.cli import render, rows
    from pipelines.operations.lineage import why as life

    with terminal.ledger() as book:
        events = life(terminal.store(), row_id, book)
    terminal.put(render.as_json([rows.event_record(one) for one in events]) if as_json else rows.events(events))


@app.command(rich_help_panel=LOOK, epilog="Example: gongqing report --lang zh --to report.html")
def report(
    release: Annotated[str | None, typer.Option(help="Which one (default: the current one, if there is any).")] = None,
    lang: Annotated[str, typer.Option(help="en or zh.")] = "en",
    file: Annotated[Path | None, typer.Option("--to", help="Where it is written (default: in the home).")] = None,
    section: Annotated[str | None, typer.Option(help="Print one section here, by its name in the page.")] = None,
) -> None:
    """Write one page of what came, what became of it, and what it is for; it shows what people wrote."""
    from pipelines.cli import rows
    from pipelines.operations.report.page import sections, write_report

    if section is not None:
        with terminal.working("reading the tables"):
            [printed] = sections(home(), release, section)
        terminal.put(rows.section(printed))
        return
    with terminal.working("reading the tables"):
        path = write_report(home(), release=release, lang=lang, file=file)
    terminal.line(str(path))


@app.command(rich_help_panel=LOOK, epilog="Example: gongqing stats --against M")
def stats(
    against: Annotated[str | None, typer.Option(help="M, E or C: one paper's tables alone.")] = None,
    diversity: Annotated[
        bool, typer.Option("--diversity", help="How varied dialogues are before and after they were rewritten.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The papers' tables over our rows, beside the papers' figures."""
    from pipelines.cli import render as display
    from pipelines.operations.paper_tables import dialogue_diversity, paper_tables

    if diversity:
        figures = dialogue_diversity(terminal.store(), terminal.store().version("rewritten_dialogues"))
        terminal.put(display.as_json(figures.to_dicts()) if as_json else display.diversity(figures))
        return
    makers = ("M", "E", "C")
    if against is not None and against.upper() not in makers:
        raise UnknownName("paper", against, makers)
    by_paper = paper_tables(terminal.store(), against)
    if as_json:
        terminal.put(display.as_json({name: table.as_dict() for name, table in by_paper.items()}))
        return
    for table in by_paper.values():
        terminal.put(display.paper_table(table))
