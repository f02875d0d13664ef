"""The command line `gongqing`. It parses, calls, prints; heavy imports stand in the commands that need them."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from crawlers.errors import CrawlError
from pipelines.errors import DamagedVersion, GongqingError, RequestError, UnknownName
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

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TableName = Annotated[str, typer.Argument(help="A table, such as unique_posts.")]
Partition = Annotated[str | None, typer.Option(help="The data set, of a partitioned table.")]


@app.callback()
def options(debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False) -> None:
    """Options of every command."""
    if home().exists() and not home().is_dir():
        raise RequestError("the home is a file", where=home(), remedy="set GONGQING_HOME to a folder")
    if debug:
        os.environ["_GONGQING_DEBUG"] = "1"


@app.command("import")
def import_(
    name: Annotated[str, typer.Argument(help="What it is: psyqa, smile, cpsycoun, esconv … or mapped.")],
    path: Annotated[Path, typer.Argument(help="The file, folder or archive.")],
    data_set: Annotated[str | None, typer.Option("--as", help="The name to keep it under (default: NAME).")] = None,
    mapping: Annotated[Path | None, typer.Option(help="For mapped: the TOML file that maps its columns.")] = None,
) -> None:
    """Read a public data set into imported_posts or imported_dialogues."""
    _import(home(), name, path, data_set, mapping)


def _import(folder: Path, name: str, path: Path, data_set: str | None, mapping: Path | None) -> None:
    from pipelines.defs.running import run_import
    from pipelines.imports import target_table
    from pipelines.store import Store

    load(folder)
    table = target_table(name, mapping)
    kept_as = data_set or name
    with _working(f"reading {path.name}"):
        run_import(folder, table, kept_as, name, path.resolve(), mapping.resolve() if mapping else None)
    version = Store(folder / "data").version(table, partition=kept_as)
    _line(f"{version.name}: {version.rows:,} kept, {version.dropped:,} dropped, version {version.version}")


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
        _estimate(home(), select or [], provider)
    else:
        _refresh(home(), select or [], provider, None if budget is None else str(budget), batch=batch)


def _refresh(
    folder: Path, select: list[str], provider: str | None = None, budget: str | None = None, *, batch: bool = False
) -> None:
    from decimal import Decimal

    from pipelines import refresh as refreshing
    from pipelines.askers import Askers
    from pipelines.crawl.preparing import expire_pages

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
            batch=batch,
            progress=shown,
        ) as askers,
    ):

        def run(stage: Any) -> None:
            from pipelines.defs.running import run_stage  # imports Dagster: only where something is stale

            run_stage(folder, stage, askers)

        ran = waiting = 0
        for outcome in shown.over(refreshing.refresh(folder, settings, run, select, askers), total):
            ran += outcome.ran
            waiting += outcome.waits is not None
            if outcome.waits is not None:
                _line(f"{', '.join(outcome.stage.tables)} waits: {outcome.waits}")
            for version in outcome.versions if outcome.ran else ():
                _line(
                    f"{version.name}: {version.rows:,} kept, {version.dropped:,} dropped, version {version.version}"
                    f"  ({outcome.seconds:.1f} s)"
                )
    if waiting:
        _line("what waits for a budget: gongqing refresh --estimate says what it takes, --budget USD allows it")
    if ran or not waiting:
        _line("everything is up to date" if not ran else f"{ran} stage{'s' if ran > 1 else ''} made anew")


def _estimate(folder: Path, select: list[str], provider: str | None) -> None:
    from pipelines import display
    from pipelines import refresh as refreshing
    from pipelines.askers import Askers

    settings = load(folder)
    with Askers(folder, settings.llm, provider=provider) as askers:
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
    table: TableName,
    v1: Annotated[str, typer.Argument(help="The version before, or the beginning of it.")],
    v2: Annotated[str, typer.Argument(help="The version after.")],
    partition: Partition = None,
    as_json: AsJson = False,
) -> None:
    """What changed between two versions: rows added, removed, changed, by their key."""
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


@app.command()
def why(
    row_id: Annotated[str, typer.Argument(help="A post, an answer, a dialogue or a round.")], as_json: AsJson = False
) -> None:
    """The life of one row through every stage."""
    from pipelines import display
    from pipelines.why import why as life

    found = life(_store(), row_id)
    _print(display.as_json([event.as_dict() for event in found]) if as_json else display.events(found))


@app.command()
def stats(
    against: Annotated[str | None, typer.Option(help="M, E or C: one paper's table alone.")] = None,
    as_json: AsJson = False,
) -> None:
    """The papers' tables over our rows, beside the papers' figures."""
    from pipelines import display
    from pipelines.stats import c_agreement, e_table_1, m_table_1, with_topics

    makers = ("M", "E", "C")
    if against is not None and against.upper() not in makers:
        raise UnknownName("paper", against, makers)
    wanted = makers if against is None else (against.upper(),)
    store = _store()
    posts = store.read("unique_posts").collect()
    if store.pointer("topics") is not None:
        posts = with_topics(posts, store.read("topics").collect())
    found = {name: make(posts) for name, make in (("M", m_table_1), ("E", e_table_1)) if name in wanted}
    if "C" in wanted and (against or store.pointer("cer_candidates") is not None):
        candidates, turns = (store.read(table).collect() for table in ("cer_candidates", "sampled_turns"))
        found["C"] = c_agreement(candidates, turns)
    if as_json:
        _print(display.as_json({name: table.as_dict() for name, table in found.items()}))
        return
    for table in found.values():
        _print(display.paper_table(table))


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
    from pipelines.llm.ledger import FILE, Ledger

    path = home() / FILE
    if not path.exists():
        _print("[]" if as_json else "no model was asked yet; gongqing refresh --provider openai --estimate")
        return
    with Ledger(path) as book:
        found: list[Any] = [*(book.open_attempts() if open_ else book.spend())]
    if as_json:
        _print(display.as_json([asdict(one) for one in found]))
    elif open_:
        _print(display.open_attempts(found) if found else "every call has an end")
    else:
        _print(display.spend(found))


@ledger_app.command()
def record(
    file: Annotated[Path, typer.Argument(help="The file to make, JSON lines.")],
    stage: Annotated[list[str] | None, typer.Option(help="Only these stages; may be given several times.")] = None,
) -> None:
    """Write the answers of the ledger as recordings for the provider `replay`."""
    from pipelines.llm.ledger import FILE, Ledger
    from pipelines.llm.providers.replay import record as write

    path = home() / FILE
    if not path.exists():
        raise RequestError("there is no ledger to record from", where=path, remedy="ask models first")
    with Ledger(path) as book:
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
    """Progress: bars on a terminal, nothing elsewhere."""
    from pipelines.bars import Bars, Silence

    return Bars(_console()) if sys.stdout.isatty() else Silence()


def main() -> None:
    """Entry point: an error of ours is a message and an exit code; a traceback only with --debug."""
    try:
        app()
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
