"""Commands that bring rows in and make tables: import, crawl, refresh, demo."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.cli import terminal
from pipelines.cli.app import MAKE, app
from pipelines.core.home import Home
from pipelines.errors import RequestError
from pipelines.settings import ENGINES, PREFIX, ROOT, home, load

if TYPE_CHECKING:
    from pipelines.core.stage import Stage
    from pipelines.flow.runner import Outcome, Report, Runner
    from pipelines.llm.ledger.records import Spend


@app.command("import", rich_help_panel=MAKE, epilog="Example: gongqing import psyqa PsyQA_full.json")
def import_(
    name: Annotated[str, typer.Argument(help="What it is: psyqa, smile, cpsycoun, esconv … or mapped; or hub.")],
    path: Annotated[Path, typer.Argument(help="The file, folder or archive; of hub: OWNER/NAME.")],
    data_set: Annotated[str | None, typer.Option("--as", help="The name to keep it under (default: NAME).")] = None,
    mapping: Annotated[Path | None, typer.Option(help="For mapped: which field goes where (docs/mapping.md).")] = None,
    revision: Annotated[str, typer.Option(help="For hub: a tag, a branch or a commit.")] = "main",
) -> None:
    """Read a public data set into imported_posts or imported_dialogues; or a release from the Hub."""
    if name == "hub":
        from pipelines.cli.releases import import_release

        import_release(str(path), revision)
        return
    _import(home(), name, path, data_set, mapping)


def _import(folder: Path, name: str, path: Path, data_set: str | None, mapping: Path | None) -> None:
    from pipelines.cli import render as display
    from pipelines.defs.running import run_import
    from pipelines.ingest.import_file import target_table
    from pipelines.store.store import Store

    load(folder)
    table = target_table(name, mapping)
    kept_as = data_set or name
    with terminal.working(f"reading {path.name}"):
        run_import(folder, table, kept_as, name, path.resolve(), mapping.resolve() if mapping else None)
    version = Store(Home(folder).data).version(table, partition=kept_as)
    terminal.line(display.made(version))


@app.command(rich_help_panel=MAKE, epilog="Example: gongqing crawl xinli001 --from 2025-03-01 --until 2025-03-02")
def crawl(
    source: Annotated[str, typer.Argument(help="A site of crawlers/sites: xinli001 …")],
    first: Annotated[str | None, typer.Option("--from", metavar="DAY", help="First day of posting, Shanghai.")] = None,
    last: Annotated[str | None, typer.Option("--until", metavar="DAY", help="Last day (default: today).")] = None,
    ids: Annotated[
        str | None, typer.Option(metavar="A-B", help="Walk over these ids of posts, not over lists: for days far back.")
    ] = None,
    max_items: Annotated[int | None, typer.Option(min=1, help="Posts at most.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Another address of the site; of `replica`: its port.")] = None,
) -> None:
    """Crawl the posts of some days into raw_posts; broken off, the same command goes on."""
    crawl_window(home(), source, first, last, ids=ids, max_items=max_items, base_url=base_url)


def crawl_window(
    folder: Path,
    source: str,
    first: str | None,
    last: str | None,
    *,
    ids: str | None = None,
    max_items: int | None = None,
    base_url: str | None = None,
    delays: bool = True,
) -> None:
    """Crawl the posts of some days, and print what became of them; the options are those of `prepare`."""
    from crawlers.dates import today
    from crawlers.options import window_of
    from pipelines.crawl.preparing import prepare
    from pipelines.defs.running import run_crawl
    from pipelines.store.store import Store

    window = window_of(first, last, ids, today())
    store, settings = Store(Home(folder).data), load(folder)
    job = prepare(
        folder, store, source, window, settings.crawl,
        base_url=base_url, max_items=max_items, ids=ids, delays=delays,
    )  # fmt: skip
    if days := len(job.taken_over):
        terminal.line(f"raw_posts of {source}: {days} days that an earlier crawl had brought, taken over")
    versions, figures = run_crawl(folder, job), job.stats
    terminal.line(
        f"raw_posts of {source}: {figures['items']:,} new or changed posts of {len(versions)} "
        f"day{'' if len(versions) == 1 else 's'}, {figures['pages']:,} pages fetched"
    )
    fates = {name: count for name, count in figures.get("posts", {}).items() if name not in {"listed", "fetched"}}
    if fates:
        counts = ", ".join(f"{count:,} {name}" for name, count in fates.items())
        terminal.line(f"  the other {'ids' if ids else 'posts of the lists'}: {counts}")
    answers = figures.get("answers", {})
    if answers.get("missing"):
        terminal.line(f"  answers: {answers['found']:,} of {answers['stated']:,} that the pages state")
    if figures.get("list_ended_first"):
        terminal.line(f"  the site's list ended before {window.first}: older posts may be out of its reach")


@app.command(rich_help_panel=MAKE, epilog="Example: gongqing refresh --provider openai --budget 20")
def refresh(
    select: Annotated[
        list[str] | None, typer.Option(help="Only these groups or tables; may be given several times.")
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            help="Who answers: openai (any compatible host, or a model of your own machine), replay, written (for the "
            "samples). Default: as the settings say; without one, what needs a model waits."
        ),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(min=0, metavar="USD", help="The most that this refresh may spend on answers.")
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what the questions would take; make and send nothing.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be made and why; make, ask and change nothing.")
    ] = False,
    batch: Annotated[
        bool, typer.Option("--batch", help="Ask through batch interfaces: half the price, within a day.")
    ] = False,
    allow_shrink: Annotated[
        bool, typer.Option("--allow-shrink", help="Make a table also where answers alone would halve it.")
    ] = False,
    engine: Annotated[
        str | None, typer.Option(help=f"Where rows are cleaned and compared: {' or '.join(ENGINES)}.")
    ] = None,
) -> None:
    """Make every table that is stale, in order. What costs money needs a budget."""
    if engine is not None:  # the environment hands it to Dagster's processes as well
        os.environ[PREFIX + "ENGINE"] = engine
    if estimate and dry_run:
        hint = "--dry-run for what would be made, --estimate for what the questions would take"
        raise RequestError("--dry-run and --estimate are two looks", hint=hint)
    if dry_run:
        _preview(select or [], provider, budget=budget is not None)
    elif estimate:
        _estimate(select or [], provider, batch=batch)
    else:
        with _bill(select or []) if budget is not None else nullcontext():
            spent = None if budget is None else str(budget)
            _refresh(home(), select or [], provider, spent, batch=batch, allow_shrink=allow_shrink)


def _preview(select: list[str], provider: str | None, *, budget: bool) -> None:
    from pipelines.cli import render as display
    from pipelines.flow.preview import preview

    with terminal.working("looking at every table"):
        stages = preview(home(), load(home()), select, provider, budget=budget)
    terminal.put(display.previews(stages))


def _estimate(select: list[str], provider: str | None, *, batch: bool) -> None:
    from pipelines.cli import render as display
    from pipelines.flow.clients import ClientPool
    from pipelines.flow.refresh import estimates

    settings = load(home())
    with ClientPool(home(), settings.llm, provider=provider, batch=batch) as clients:
        by_stage = [(one.name, taken) for one, taken in estimates(home(), settings, clients, select)]
    terminal.put(display.estimates(by_stage))


@contextmanager
def _bill(select: list[str]) -> Iterator[None]:
    """Print what was asked of paid models within the block, and what it cost, however the block ends."""
    import datetime as dt

    from pipelines.cli import render as display
    from pipelines.flow.refresh import chosen

    stages, before = {stage.name for stage in chosen(select)}, _spend()
    try:
        yield
    finally:
        for line in display.bill(before, _spend(), stages, dt.datetime.now(dt.UTC).date().isoformat()):
            terminal.line(line)


def _spend() -> "list[Spend]":
    with terminal.ledger() as book:
        return book.spend() if book else []


def _refresh(
    folder: Path,
    select: list[str],
    provider: str | None = None,
    budget: str | None = None,
    *,
    batch: bool = False,
    allow_shrink: bool = False,
) -> None:
    from decimal import Decimal

    from pipelines.cli import render as display
    from pipelines.crawl.preparing import expire_pages
    from pipelines.errors import LlmError
    from pipelines.flow import refresh as refreshing
    from pipelines.flow.clients import ClientPool
    from pipelines.llm.questions import NO_ANSWER, OVER_BUDGET

    settings = load(folder)
    expire_pages(folder, settings.crawl)
    total = len(refreshing.chosen(select))
    done: list[Outcome] = []
    with (
        terminal.progress() as shown,
        ClientPool(
            folder,
            settings.llm,
            provider=provider,
            budget=None if budget is None else Decimal(budget),
            budget_of=refreshing.budget_name(select),
            batch=batch,
            allow_shrink=allow_shrink,
            progress=shown,
        ) as clients,
    ):

        def run(runner: "Runner", stages: "list[Stage]", report: "Report") -> None:
            from pipelines.defs.running import run_stages  # imports Dagster: only where something is stale

            run_stages(folder, runner, stages, report)

        def report(outcome: "Outcome") -> None:
            done.append(outcome)
            shown.advance(len(done), total)
            for damaged in outcome.damaged:
                terminal.line(f"{damaged}: made again")
            for version in outcome.versions if outcome.ran else ():
                terminal.line(display.made(version, outcome.seconds))

        shown.advance(0, total)
        refreshing.refresh(folder, settings, select, clients, run, report)
    ran = [outcome for outcome in done if outcome.ran]
    waiting: dict[str, list[str]] = {}
    for outcome in done:
        if outcome.waits is not None:
            waiting.setdefault(outcome.waits, []).extend(outcome.stage.tables)
    asked = [version.manifest for outcome in ran if outcome.stage.asks for version in outcome.versions]
    unanswered = sum(manifest.dropped_for(NO_ANSWER) for manifest in asked)
    dear = sum(manifest.dropped_for(OVER_BUDGET) for manifest in asked)
    if not ran and any(Home(folder).under_way.glob("[0-9]*")):
        from pipelines.defs.running import close_killed_runs  # a run, which there was none of, closes them as well

        close_killed_runs(folder)
    if unanswered:
        terminal.line(f"{unanswered:,} rows had no answer from a model: the same command asks for them again")
    if dear:
        terminal.line(f"{dear:,} rows may each cost more than the whole budget: a larger --budget asks for them")
    for reason, tables in waiting.items():
        terminal.line(f"{', '.join(tables)} wait{'s' if len(tables) == 1 else ''} {reason}")
    short = [table for reason, tables in waiting.items() if reason.startswith("for a budget") for table in tables]
    if short and budget is None:
        terminal.line("what waits for a budget: gongqing refresh --estimate says what it takes, --budget USD allows it")
    if ran:
        terminal.line(f"{len(ran)} stage{'s' if len(ran) > 1 else ''} made")
    else:
        terminal.line(f"everything{' else' if waiting else ''} is up to date")
    if short and budget is not None:
        raise LlmError(
            f"the budget of {budget} was not enough to ask everything: "
            f"{', '.join(short)} wait{'s' if len(short) == 1 else ''}",
            hint="the same command with a larger --budget, which counts what was spent of this one, asks for the rest "
            "alone; what is answered stands in the tables, or in the ledger",
        )


@app.command(rich_help_panel=MAKE, epilog="Example: gongqing demo")
def demo() -> None:
    """The main job on samples/ (invented posts and dialogues), ending with a table of what was made."""
    from pipelines.cli import render as display
    from pipelines.cli.tables import list_tables
    from pipelines.operations.sample_votes import write_sample_votes
    from pipelines.settings import author_key, make_author_key
    from pipelines.store.store import Store
    from samples.replica import Replica

    folder, samples = home(), ROOT / "samples"
    make_author_key(folder)
    lines = (samples / "posts.jsonl").read_text(encoding="utf-8").splitlines()
    days = [json.loads(line)["posted_at"][:10] for line in lines]
    with Replica() as replica:  # of a site, which runs for as long as the crawl takes
        crawl_window(folder, "replica", min(days), max(days), base_url=replica.url, delays=False)
    _import(folder, "mapped", samples / "dialogues.jsonl", "sample", samples / "dialogues.toml")
    _refresh(folder, [], "written")
    key = author_key(folder)
    assert key is not None
    # Invented, on candidates that were made before.
    for version in write_sample_votes(Store(Home(folder).data), load(folder), key):
        terminal.line(display.made(version))
    _refresh(folder, [], "written")
    list_tables(folder)
    terminal.line(f"\nThe tables lie in {folder / 'data'}. All texts are invented. Where to look now:")
    terminal.line("  gongqing show grpo_cer -n 1       a prompt of the CER set, with its dialogue")
    terminal.line("  gongqing show clean_posts --dropped   what was dropped, and why")
    terminal.line("  gongqing why replica:100841683    the life of one row: a repeat, merged")
    terminal.line("  gongqing stats                    the papers' tables over these posts")
    terminal.line("  gongqing ui                       the same in Dagster's web UI (make ui)")
