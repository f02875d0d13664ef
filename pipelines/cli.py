"""The command line `gongqing`. It parses, calls, prints; heavy imports stand in the commands that need them."""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from crawlers.errors import CrawlError
from pipelines.errors import DamagedVersion, GongqingError, Interrupted, RequestError, UnknownName
from pipelines.settings import ENGINES, PREFIX, ROOT, home, load

app = typer.Typer(
    name="gongqing",
    help="From public help-seeking posts and dialogues to data that trains an empathetic Chinese model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
tables_app = typer.Typer(invoke_without_command=True, help="The tables there are, and which version is current.")
app.add_typer(tables_app, name="tables")
ledger_app = typer.Typer(invoke_without_command=True, help="What was asked of models, and what it cost.")
app.add_typer(ledger_app, name="ledger")
releases_app = typer.Typer(invoke_without_command=True, help="The releases there are, and which one is current.")
app.add_typer(releases_app, name="releases")
export_app = typer.Typer(no_args_is_help=True, help="Give a release away: what of it may be published.")
app.add_typer(export_app, name="export")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TableName = Annotated[str, typer.Argument(help="A table, such as unique_posts.")]
Partition = Annotated[str | None, typer.Option(help="The data set, of a partitioned table.")]
OfRelease = Annotated[str | None, typer.Option("--release", help="Which one (default: the current release).")]


@app.callback()
def options(debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False) -> None:
    """Options of every command."""
    if home().exists() and not home().is_dir():
        raise RequestError("the home is a file", where=home(), remedy="set GONGQING_HOME to a folder")
    if debug:
        os.environ["_GONGQING_DEBUG"] = "1"


@app.command("import")
def import_(
    name: Annotated[str, typer.Argument(help="What it is: psyqa, smile, cpsycoun, esconv … or mapped; or hub.")],
    path: Annotated[Path, typer.Argument(help="The file, folder or archive; of hub: OWNER/NAME.")],
    data_set: Annotated[str | None, typer.Option("--as", help="The name to keep it under (default: NAME).")] = None,
    mapping: Annotated[Path | None, typer.Option(help="For mapped: which field goes where (docs/mapping.md).")] = None,
    revision: Annotated[str, typer.Option(help="For hub: a tag, a branch or a commit.")] = "main",
) -> None:
    """Read a public data set into imported_posts or imported_dialogues; or a release from the Hub."""
    if name == "hub":
        _import_release(str(path), revision)
        return
    _import(home(), name, path, data_set, mapping)


def _import(folder: Path, name: str, path: Path, data_set: str | None, mapping: Path | None) -> None:
    from pipelines import display
    from pipelines.defs.running import run_import
    from pipelines.imports import target_table
    from pipelines.store import Store

    load(folder)
    table = target_table(name, mapping)
    kept_as = data_set or name
    with _working(f"reading {path.name}"):
        run_import(folder, table, kept_as, name, path.resolve(), mapping.resolve() if mapping else None)
    version = Store(folder / "data").version(table, partition=kept_as)
    _line(display.made(version))


@app.command()
def crawl(
    source: Annotated[str, typer.Argument(help="A site of crawlers/sites: xinli001 …")],
    first: Annotated[str | None, typer.Option("--from", metavar="DAY", help="First day of posting, Shanghai.")] = None,
    last: Annotated[str | None, typer.Option("--until", metavar="DAY", help="Last day (default: today).")] = None,
    max_items: Annotated[int | None, typer.Option(min=1, help="Posts at most.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Another address of the site; of `replica`: its port.")] = None,
) -> None:
    """Crawl the posts of some days into raw_posts; broken off, the same command goes on."""
    _crawl(home(), source, first, last, max_items=max_items, base_url=base_url)


def _crawl(
    folder: Path,
    source: str,
    first: str | None,
    last: str | None,
    *,
    max_items: int | None = None,
    base_url: str | None = None,
    delays: bool = True,
) -> None:
    from crawlers.window import Window, today
    from pipelines.crawl.preparing import prepare
    from pipelines.defs.running import run_crawl
    from pipelines.store import Store

    window = Window.parse(first, last, today())
    store, settings = Store(folder / "data"), load(folder)
    job = prepare(folder, store, source, window, settings.crawl, base_url=base_url, max_items=max_items, delays=delays)
    if job.taken_over:
        _line(f"raw_posts of {source}: {len(job.taken_over)} days that an earlier crawl had brought, taken over")
    versions, figures = run_crawl(folder, job), job.stats
    _line(
        f"raw_posts of {source}: {figures['items']:,} new or changed posts of {len(versions)} "
        f"day{'' if len(versions) == 1 else 's'}, {figures['pages']:,} pages fetched"
    )
    fates = {name: count for name, count in figures.get("posts", {}).items() if name not in {"listed", "fetched"}}
    if fates:
        _line("  the other posts of the lists: " + ", ".join(f"{count:,} {name}" for name, count in fates.items()))
    if figures.get("list_ended_first"):
        _line(f"  the site's list ended before {window.first}: older posts may be out of its reach")


@app.command()
def refresh(
    select: Annotated[
        list[str] | None, typer.Option(help="Only these groups or tables; may be given several times.")
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(help="Who answers: rules, openai (any compatible host), replay. Default: as the settings say."),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(min=0, metavar="USD", help="The most that this refresh may spend on answers.")
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what the questions would take; make and send nothing.")
    ] = False,
    batch: Annotated[
        bool, typer.Option("--batch", help="Ask through batch interfaces: half the price, within a day.")
    ] = False,
    engine: Annotated[
        str | None, typer.Option(help=f"Where near-duplicates are searched: {' or '.join(ENGINES)}.")
    ] = None,
) -> None:
    """Make every table that is stale, in order. What costs money needs a budget."""
    if engine is not None:  # the environment hands it to Dagster's processes as well
        os.environ[PREFIX + "ENGINE"] = engine
    if estimate:
        _estimate(home(), select or [], provider, batch=batch)
    else:
        _refresh(home(), select or [], provider, None if budget is None else str(budget), batch=batch)


def _refresh(
    folder: Path, select: list[str], provider: str | None = None, budget: str | None = None, *, batch: bool = False
) -> None:
    from decimal import Decimal

    from pipelines import display
    from pipelines import refresh as refreshing
    from pipelines.askers import Askers
    from pipelines.crawl.preparing import expire_pages
    from pipelines.llm.questions import NO_ANSWER

    settings = load(folder)
    expire_pages(folder, settings.crawl)
    total = len(refreshing.chosen(select))
    with (
        _shown() as shown,
        Askers(
            folder,
            settings.llm,
            provider=provider,
            budget=None if budget is None else Decimal(budget),
            budget_of=refreshing.budget_name(select),
            batch=batch,
            progress=shown,
        ) as askers,
    ):

        def run(stage: Any) -> None:
            from pipelines.defs.running import run_stage  # imports Dagster: only where something is stale

            run_stage(folder, stage, askers)

        ran = waiting = unanswered = 0
        for outcome in shown.over(refreshing.refresh(folder, settings, run, select, askers), total):
            ran += outcome.ran
            waiting += outcome.waits is not None
            if outcome.waits is not None:
                _line(f"{', '.join(outcome.stage.tables)} waits: {outcome.waits}")
            for version in outcome.versions if outcome.ran else ():
                _line(display.made(version, outcome.seconds))
                if outcome.stage.asks:
                    unanswered += version.manifest.dropped_for(NO_ANSWER)
    if unanswered:
        _line(f"{unanswered:,} rows had no answer from a model: the same command asks for them again")
    if waiting:
        _line("what waits for a budget: gongqing refresh --estimate says what it takes, --budget USD allows it")
    if ran or not waiting:
        _line("everything is up to date" if not ran else f"{ran} stage{'s' if ran > 1 else ''} made anew")


def _estimate(folder: Path, select: list[str], provider: str | None, *, batch: bool) -> None:
    from pipelines import display
    from pipelines import refresh as refreshing
    from pipelines.askers import Askers

    settings = load(folder)
    with Askers(folder, settings.llm, provider=provider, batch=batch) as askers:
        found = [(stage.name, taken) for stage, taken in refreshing.estimates(folder, settings, askers, select)]
    _print(display.estimates(found))


@tables_app.callback()
def tables(
    context: typer.Context,
    as_json: AsJson = False,
    versions: Annotated[bool, typer.Option("--versions", help="All versions, not the current ones alone.")] = False,
) -> None:
    """List the tables."""
    if context.invoked_subcommand is None:
        _tables(home(), as_json=as_json, all_versions=versions)


def _tables(folder: Path, *, as_json: bool = False, all_versions: bool = False) -> None:
    from pipelines import display
    from pipelines.store import Store
    from schemas.tables import PARTITIONED, TABLES

    store = Store(folder / "data")
    found, damaged = [], []
    for table in TABLES:
        try:
            found += store.current(table)
        except DamagedVersion as error:
            damaged.append(error)
    if all_versions:
        places = [
            (table, place)
            for table in TABLES
            for place in (store.partitions(table) if table in PARTITIONED else [None])
        ]
        found = [version for table, place in places for version in store.versions(table, place)]
    if as_json:
        _print(display.as_json([display.version_record(version) for version in found]))
    elif found:
        _print(display.versions(found, all_versions=all_versions))
    elif not damaged:
        _line("no tables yet: gongqing import NAME PATH, then gongqing refresh; or gongqing demo")
    if damaged:
        raise damaged[0]


@tables_app.command()
def promote(
    table: TableName,
    version: Annotated[str, typer.Argument(help="The version, or the beginning of it.")],
    partition: Partition = None,
) -> None:
    """Make an older version the current one, until something upstream of the table changes."""
    promoted = _store().promote(table, version, partition)
    _line(f"{promoted.name}: version {promoted.version} is current")


@app.command()
def show(
    table: TableName,
    n: Annotated[int, typer.Option("-n", min=1, help="How many rows.")] = 5,
    version: Annotated[str | None, typer.Option(help="An older version, or the beginning of it.")] = None,
    partition: Partition = None,
    dropped: Annotated[bool, typer.Option("--dropped", help="The rows that were dropped, with their reasons.")] = False,
    as_json: AsJson = False,
) -> None:
    """A look at the rows of a table."""
    from pipelines import display

    store = _store()
    rows = (store.read_dropped if dropped else store.read)(table, version, partition).head(n).collect()
    if as_json:
        _print(display.as_json(rows.to_dicts()))
        return
    for values in rows.iter_rows(named=True):
        _print(display.row("dropped" if dropped else table, values))
    if rows.is_empty():
        _line(f"{table} has no {'dropped ' if dropped else ''}rows")


@app.command()
def diff(
    table: Annotated[str, typer.Argument(help="A table, such as unique_posts; or the release before.")],
    v1: Annotated[str, typer.Argument(help="The version before, or the beginning of it; or the release after.")],
    v2: Annotated[str | None, typer.Argument(help="The version after; of two releases nothing.")] = None,
    partition: Partition = None,
    as_json: AsJson = False,
) -> None:
    """What changed between two versions of a table, by the key of its rows; or between two releases, as Markdown."""
    if v2 is None:
        _diff_releases(table, v1, as_json=as_json)
        return
    from pipelines import display
    from schemas.tables import TABLES

    found = _store().diff(table, v1, v2, partition)
    key = TABLES[table].key()
    if as_json:
        _print(
            display.as_json(
                {
                    "added": found.added.select(key).to_dicts(),
                    "removed": found.removed.select(key).to_dicts(),
                    "changed": found.changed.to_dicts(),
                }
            )
        )
        return
    console = _console()
    for sign, frame in (("+", found.added), ("-", found.removed), ("~", found.changed)):
        display.changed_keys(frame, key, console, sign)
    _line(f"{found.added.height:,} added, {found.removed.height:,} removed, {found.changed.height:,} changed")


def _diff_releases(before: str, after: str, *, as_json: bool) -> None:
    from pipelines import display
    from pipelines.release.changelog import markdown
    from pipelines.release.changes import changes

    found = changes(home(), before, after)
    _print(display.as_json(found.as_dict()) if as_json else markdown(found).rstrip())


@app.command()
def release(
    name: Annotated[str, typer.Argument(help="Its name: small letters, figures, points, hyphens, underscores.")],
    allow: Annotated[list[str] | None, typer.Option(help="A check that may find what it finds: rules_rows.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check what would leave the house, pin every table, and write the training sets (docs/releasing.md)."""
    from pipelines import display
    from pipelines.errors import ReleaseRefused
    from pipelines.release.releases import Releases
    from pipelines.releasing import release as make

    settings, stood = load(home()), name in Releases(home())
    try:
        with _working(f"checking what {name} would hold"):
            made = make(home(), name, allow=allow or (), settings=settings)
    except ReleaseRefused as refused:
        records = [finding.model_dump() for finding in refused.findings]
        _print(display.as_json(records) if as_json else display.findings(refused.findings))
        raise
    if as_json:
        _print(display.as_json(made.model_dump(mode="json")))
        return
    _print(display.findings(made.findings, made.allowed))
    told = " (it was there already, and stays as it is)" if stood else ""
    _line(
        f"{name}: {sum(map(made.rows, made.configs)):,} rows in {len(made.configs)} sets, content {made.content}{told}"
    )


@releases_app.callback()
def releases(context: typer.Context, as_json: AsJson = False) -> None:
    """List the releases, oldest first."""
    if context.invoked_subcommand is not None:
        return
    from pipelines import display
    from pipelines.release.releases import Releases

    known = Releases(home())
    found, current = [known.read(name) for name in known.names()], known.current()
    if as_json:
        _print(display.as_json([display.release_record(one, current) for one in found]))
    elif found:
        _print(display.releases(found, current))
    else:
        _line("no releases yet: gongqing release NAME")


@releases_app.command("promote")
def promote_release(name: Annotated[str, typer.Argument(help="The release.")]) -> None:
    """Make an older release the current one."""
    from pipelines.release.releases import Releases

    _line(f"{Releases(home()).promote(name).name} is current")


@export_app.command("folder")
def export_to_folder(
    folder: Annotated[Path, typer.Argument(help="A new or an empty folder.")], release: OfRelease = None
) -> None:
    """A folder with shards, card and manifest, as it may be given away; `datasets` loads it offline."""
    from pipelines.publishing import export

    exported = export(home(), release, folder)
    _withheld(exported)
    _line(f"{exported.name}: {sum(map(exported.rows, exported.configs)):,} rows in {folder}")


@export_app.command("hub")
def export_to_hub(
    repo: Annotated[str, typer.Argument(help="OWNER/NAME on the Hub; made where there is none.")],
    release: OfRelease = None,
    public: Annotated[bool, typer.Option("--public", help="Let everybody see that it is there.")] = False,
) -> None:
    """One commit and a tag on the Hugging Face Hub (the token: HF_TOKEN). Cut off, the same command goes on."""
    from pipelines.publishing import to_hub

    with _shown() as shown:
        exported, found = to_hub(
            home(), release, repo, public=public, told=lambda done, total: shown.moved("upload", done, total)
        )
    _withheld(exported)
    _line(f"{repo}: {found.tag} is {'' if found.new else 'already '}there, commit {found.commit[:12]}")


@export_app.command("jsonl")
def export_to_jsonl(
    folder: Annotated[Path, typer.Argument(help="A new or an empty folder.")],
    form: Annotated[str, typer.Option("--for", help="llama-factory, sharegpt or openai.")],
    release: OfRelease = None,
    private: Annotated[
        bool, typer.Option("--private", help="Whole rows, for a trainer on machines of yours; not to be given away.")
    ] = False,
) -> None:
    """Files for other trainers."""
    from tempfile import TemporaryDirectory

    from pipelines.publishing import chosen, export, releases_to_give
    from pipelines.release.folder import made_whole
    from pipelines.release.jsonl import export_jsonl

    releases = releases_to_give(home())
    name = chosen(releases, release)
    with TemporaryDirectory() as scratch, made_whole(folder) as staged:
        source = releases.folder(name) if private else Path(scratch) / "release"
        told = releases.read(name) if private else export(home(), name, source)
        found = export_jsonl(told, source, staged, form)
    if not private:
        _withheld(told)
    for file, rows in found.written.items():
        _line(f"{file}: {rows:,} rows")
    for reason, rows in found.left_out.items():
        _line(f"left out, {reason}: {rows:,} rows")


@app.command()
def restore(
    release: Annotated[str, typer.Argument(help="A release that came from the Hub.")],
    folder: Annotated[Path, typer.Argument(help="A new or an empty folder.")],
) -> None:
    """Put the words that a published release withholds back from this home's own crawl."""
    from pipelines.publishing import releases_to_give
    from pipelines.release.folder import restore_folder

    _, missing = restore_folder(releases_to_give(home()), release, _store(), folder)
    _line(f"{release}: restored in {folder}")
    if missing:
        _line(f"{len(missing):,} texts are not here as they were, among them {', '.join(missing[:5])}")


def _withheld(exported: Any) -> None:
    for finding in exported.findings:
        if finding.check in ("withheld", "left_out"):
            _line(f"{finding.count:,} {finding.what}")


def _import_release(repo: str, revision: str) -> None:
    from pipelines.publishing import releases_to_give
    from pipelines.release.fetch import fetch

    with _shown() as shown:
        release = fetch(
            releases_to_give(home()), repo, revision, told=lambda done, total: shown.moved("fetch", done, total)
        )
    _line(f"{release.name}: {sum(map(release.rows, release.configs)):,} rows of {len(release.configs)} configs")


@app.command()
def why(
    row_id: Annotated[str, typer.Argument(help="A post, an answer, a dialogue or a round.")], as_json: AsJson = False
) -> None:
    """The life of one row through every stage."""
    from pipelines import display
    from pipelines.why import why as life

    found = life(_store(), row_id)
    _print(display.as_json([event.as_dict() for event in found]) if as_json else display.events(found))


@app.command("erase")
def erase_(
    rows: Annotated[
        list[str] | None, typer.Argument(metavar="ROW_ID...", help="Posts, answers, dialogues, by their ids.")
    ] = None,
    author: Annotated[list[str] | None, typer.Option(help="All that was written under a pseudonym (u_…).")] = None,
    file: Annotated[list[Path] | None, typer.Option(help="All that was imported from a file.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look for everything; erase nothing.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Finish what was begun and killed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase rows and all that was made from them, everywhere in the home, for good (docs/erasing.md)."""
    from pipelines import display
    from pipelines.erase import erasing
    from pipelines.erase.request import Request

    request = Request(tuple(rows or ()), tuple(author or ()), tuple(file or ()))
    if resume and request != Request():
        raise RequestError("--resume finishes what was begun", remedy="ask for new rows in a command of their own")
    if dry_run:
        with _working("looking"):
            plan = erasing.look(home(), request)
        _print(display.as_json(plan.touched) if as_json else display.erasure_plan(plan))
        return
    with _working("erasing"):
        receipts = erasing.resume(home()) if resume else erasing.erase(home(), request)
    if as_json:
        _print(display.as_json([receipt.model_dump(mode="json") for receipt in receipts]))
        return
    for receipt in receipts:
        _print(display.erasure(receipt))
    if not receipts:
        _line("no erasure is unfinished")


@app.command()
def stats(
    against: Annotated[str | None, typer.Option(help="M, E or C: one paper's table alone.")] = None,
    diversity: Annotated[
        bool, typer.Option("--diversity", help="How varied dialogues are before and after they were rewritten.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The papers' tables over our rows, beside the papers' figures."""
    from pipelines import display
    from pipelines.stats import paper_tables

    if diversity:
        _diversity(as_json=as_json)
        return
    makers = ("M", "E", "C")
    if against is not None and against.upper() not in makers:
        raise UnknownName("paper", against, makers)
    found = paper_tables(_store(), against)
    if as_json:
        _print(display.as_json({name: table.as_dict() for name, table in found.items()}))
        return
    for table in found.values():
        _print(display.paper_table(table))


def _diversity(*, as_json: bool) -> None:
    from pipelines import display
    from pipelines.stats import dialogue_diversity

    store = _store()
    figures = dialogue_diversity(store, store.version("rewritten_dialogues"))
    _print(display.as_json(figures.to_dicts()) if as_json else display.diversity(figures))


@ledger_app.callback()
def ledger(
    context: typer.Context,
    open_: Annotated[bool, typer.Option("--open", help="Calls without an end: under way, or lost.")] = False,
    as_json: AsJson = False,
) -> None:
    """Calls, tokens and money by stage, model and day."""
    if context.invoked_subcommand is not None:
        return
    from dataclasses import asdict

    from pipelines import display

    with _ledger() as book:
        if book is None:
            _print("[]" if as_json else "no model was asked yet; gongqing refresh --provider openai --estimate")
            return
        found: list[Any] = [*(book.open_attempts() if open_ else book.spend())]
    if as_json:
        _print(display.as_json([asdict(one) for one in found]))
    elif open_:
        _print(display.open_attempts(found) if found else "every call has an end")
    else:
        _print(display.spend(found))


@ledger_app.command()
def budgets(as_json: AsJson = False) -> None:
    """The open budgets: of a refresh that is at work, or was broken off and will go on with what is left."""
    from pipelines import display

    with _ledger() as book:
        found = book.budgets() if book else []
    if as_json:
        _print(display.as_json([display.budget_record(one) for one in found]))
    else:
        _print(display.budgets(found) if found else "no budget is open")


@ledger_app.command("close-budget")
def close_budget(
    name: Annotated[str, typer.Argument(help="As `gongqing ledger budgets` names it: refresh, refresh:topics …")],
) -> None:
    """End a budget that was broken off: the next one of its name begins at nothing."""
    from pipelines import display
    from pipelines.refresh import alone

    with alone(home()), _ledger() as book:
        known = {one.of: one for one in book.budgets()} if book else {}
        if name not in known:
            raise UnknownName("open budget", name, known)
        book.close_budget(known[name])
    _print(display.budgets([known[name]]))
    _line(f"{name} is closed")


@ledger_app.command("give-up-batch")
def give_up_batch(
    number: Annotated[int, typer.Argument(help="As the refusal names it: a batch that nobody can collect any more.")],
) -> None:
    """End a batch whose host or price has changed: its questions are asked anew, what it may cost stays set aside."""
    import asyncio

    with _ledger() as book:
        if book is None:
            raise RequestError("there is no ledger, so there are no batches", where=home(), remedy="ask models first")
        left = asyncio.run(book.batches.give_up(number))
    _line(f"batch {number} is given up: {left:,} questions that it had will be asked anew")


@ledger_app.command()
def record(
    file: Annotated[Path, typer.Argument(help="The file to make, JSON lines.")],
    stage: Annotated[list[str] | None, typer.Option(help="Only these stages; may be given several times.")] = None,
) -> None:
    """Write the answers of the ledger as recordings for the provider `replay`."""
    from pipelines.llm.providers.replay import record as write

    with _ledger() as book:
        if book is None:
            raise RequestError("there is no ledger to record from", where=home(), remedy="ask models first")
        written = write(book, file, stage, extra=load(home()).llm.profiles)
    _line(f"{written:,} answers recorded in {file}")


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Look at the machine, the home, and every version in it."""
    from pipelines import display
    from pipelines.doctor import examine

    findings = list(examine(home()))
    if as_json:
        _print(display.as_json([finding.as_dict() for finding in findings]))
    else:
        for finding in findings:
            _line(f"{finding.state:8} {finding.what}: {finding.detail}")
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(1)


@app.command()
def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 3000,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
) -> None:
    """Dagster's web UI and daemon on this home, until interrupted."""
    from pipelines.defs.instance import instance

    folder = home()
    instance(folder).dispose()
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(folder),
        "GONGQING_HOME": str(folder),
        "VIRTUAL_ENV": sys.prefix,
    }
    dg = str(Path(sys.executable).with_name("dg"))
    os.chdir(ROOT)  # dg looks for the project in the folder it is started in
    os.execve(dg, [dg, "dev", "--host", host, "--port", str(port)], environment)


@app.command()
def demo() -> None:
    """The main job on samples/ (invented posts and dialogues), ending with a table of what was made."""
    from pipelines.imports import make_author_key

    folder = home()
    make_author_key(folder)
    _crawl_samples(folder)
    samples = ROOT / "samples"
    _import(folder, "mapped", samples / "dialogues.jsonl", "sample", samples / "dialogues.toml")
    _refresh(folder, [])
    _tables(folder)
    _line("")
    _line(f"The tables lie in {folder / 'data'}. All texts are invented. Where to look now:")
    _line("  gongqing show grpo_cer -n 1       a prompt of the CER set, with its dialogue")
    _line("  gongqing show clean_posts --dropped   what was dropped, and why")
    _line("  gongqing why replica:100841683    the life of one row: a repeat, merged")
    _line("  gongqing stats                    the papers' tables over these posts")
    _line("  gongqing ui                       the same in Dagster's web UI (make ui)")


def _crawl_samples(folder: Path) -> None:
    """The sample posts, crawled from a replica of a site that runs for as long as that takes."""
    import json

    from samples.replica import Replica

    lines = (ROOT / "samples" / "posts.jsonl").read_text(encoding="utf-8").splitlines()
    days = [json.loads(line)["posted_at"][:10] for line in lines]
    with Replica() as replica:
        _crawl(folder, "replica", min(days), max(days), base_url=replica.url, delays=False)


@contextmanager
def _ledger() -> Iterator[Any]:
    """The ledger of the home; None where no model was asked yet, for to look makes none."""
    from pipelines.llm.ledger.ledger import FILE, Ledger

    path = home() / FILE
    if not path.exists():
        yield None
        return
    with Ledger(path) as book:
        yield book


def _store() -> Any:
    from pipelines.store import Store

    return Store(home() / "data")


def _console() -> Any:
    from rich.console import Console

    # Off a terminal there is no width to keep to; 200 is as wide as a reader of a log can bear.
    return Console() if sys.stdout.isatty() else Console(width=200)


def _print(what: Any) -> None:
    if isinstance(what, str):
        sys.stdout.write(what + "\n")
    else:
        _console().print(what)


def _line(what: str) -> None:
    sys.stdout.write(what + "\n")
    sys.stdout.flush()


def _working(what: str) -> AbstractContextManager[Any]:
    """A sign of life on a terminal while something of unknown length goes on."""
    return _console().status(what) if sys.stdout.isatty() else nullcontext()


def _shown() -> Any:
    """Progress: bars on a terminal, lines elsewhere."""
    from pipelines.progress import Bars, Lines

    return Bars(_console()) if sys.stdout.isatty() else Lines(_line)


def main() -> None:
    """Entry point: an error of ours is a message and an exit code; a traceback only with --debug."""
    try:
        app()
    except SystemExit as end:
        if end.code == Interrupted.exit_code:  # Ctrl-C, of which typer says nothing
            sys.stderr.write(f"gongqing: {Interrupted()}\n")
        raise
    except (GongqingError, CrawlError) as error:  # crawlers know nothing of ours, and have errors of the same form
        if "_GONGQING_DEBUG" in os.environ:
            raise
        sys.stderr.write(f"gongqing: {error}\n")
        sys.exit(error.exit_code)
    except Exception as error:
        if "_GONGQING_DEBUG" in os.environ:
            raise
        sys.stderr.write(f"gongqing: {type(error).__name__}: {error}\n  remedy: run again with --debug and report it\n")
        sys.exit(1)
