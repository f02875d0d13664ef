"""Commands of releases: release, releases, export, restore."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.cli import terminal
from pipelines.cli.app import GIVE, app, export_app, releases_app
from pipelines.cli.terminal import AsJson
from pipelines.settings import home, load

OfRelease = Annotated[str | None, typer.Option("--release", help="Which one (default: the current release).")]


@app.command(rich_help_panel=GIVE, epilog="Example: gongqing release v1 --allow not_from_a_model")
def release(
    name: Annotated[str, typer.Argument(help="Its name: small letters, figures, points, hyphens, underscores.")],
    allow: Annotated[
        list[str] | None, typer.Option(help="A check that may find what it finds: not_from_a_model.")
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse what else is left out, and prompts of posts that no model has judged."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check what would leave the house, pin every table, and write the training sets (docs/releasing.md)."""
    from pipelines.cli import render as display
    from pipelines.errors import ReleaseRefused
    from pipelines.operations.release import release as make
    from pipelines.store.releases import Releases

    settings, stood = load(home()), name in Releases(home())
    try:
        with terminal.working(f"checking what {name} would hold"):
            made = make(home(), name, allow=allow or (), strict=strict, settings=settings)
    except ReleaseRefused as refused:
        records = [finding.model_dump() for finding in refused.findings]
        terminal.put(display.as_json(records) if as_json else display.findings(refused.findings))
        raise
    if as_json:
        terminal.put(display.as_json(made.model_dump(mode="json")))
        return
    terminal.put(display.findings(made.findings, made.allowed))
    note = " (it was there already, and stays as it is)" if stood else ""
    left_out = sum(one.count for one in made.left_out)
    without = f" ({left_out:,} left out)" if left_out else ""
    rows, sets = sum(map(made.rows, made.configs)), len(made.configs)
    terminal.line(f"{name}: {rows:,} rows{without} in {sets} sets, content {made.content}{note}")


@releases_app.callback()
def releases(context: typer.Context, as_json: AsJson = False) -> None:
    """List the releases, oldest first."""
    if context.invoked_subcommand is not None:
        return
    from pipelines.cli import render as display
    from pipelines.errors import DamagedRelease
    from pipelines.store.releases import Releases

    known, whole, current = Releases(home()), [], None
    damaged: list[DamagedRelease] = []
    for name in known.names():
        try:
            whole.append(known.read(name))
        except DamagedRelease as error:
            damaged.append(error)
    try:
        current = known.current()
    except DamagedRelease as error:
        damaged.append(error)
    if as_json:
        terminal.put(display.as_json([display.release_record(one, current) for one in whole]))
    elif whole:
        terminal.put(display.releases(whole, current))
    elif not damaged:
        terminal.line("no releases yet: gongqing release NAME")
    if damaged:
        raise damaged[0]


@releases_app.command("promote", epilog="Example: gongqing releases promote v1")
def promote_release(name: Annotated[str, typer.Argument(help="The release.")]) -> None:
    """Make an older release the current one."""
    from pipelines.store.releases import Releases

    terminal.line(f"{Releases(home()).promote(name).name} is current")


@export_app.command("folder", epilog="Example: gongqing export folder out/v1 --release v1")
def export_to_folder(
    folder: Annotated[Path, typer.Argument(help="A new or an empty folder.")], release: OfRelease = None
) -> None:
    """A folder with shards, card and manifest, as it may be given away; `datasets` loads it offline."""
    from pipelines.operations.release import export

    exported = export(home(), release, folder)
    _withheld(exported)
    terminal.line(f"{exported.name}: {sum(map(exported.rows, exported.configs)):,} rows in {folder}")


@export_app.command("hub", epilog="Example: gongqing export hub OWNER/NAME --release v1")
def export_to_hub(
    repo: Annotated[str, typer.Argument(help="OWNER/NAME on the Hub; made where there is none.")],
    release: OfRelease = None,
    public: Annotated[bool, typer.Option("--public", help="Let everybody see that it is there.")] = False,
) -> None:
    """One commit and a tag on the Hugging Face Hub (the token: HF_TOKEN). Cut off, the same command goes on."""
    from pipelines.operations.release import to_hub

    with terminal.progress() as shown:
        exported, published = to_hub(home(), release, repo, public=public, progress=partial(shown.moved, "upload"))
    _withheld(exported)
    already = "" if published.new else "already "
    terminal.line(f"{repo}: {published.tag} is {already}there, commit {published.commit[:12]}")


@export_app.command("jsonl", epilog="Example: gongqing export jsonl out/v1 --for llama-factory")
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

    from pipelines.operations.release import chosen, export, releases_to_give
    from pipelines.release.publish.folder import made_whole
    from pipelines.release.publish.jsonl import export_jsonl

    releases = releases_to_give(home())
    name = chosen(releases, release)
    with TemporaryDirectory() as scratch, made_whole(folder, home()) as staged:
        source = releases.folder(name) if private else Path(scratch) / "release"
        source_release = releases.read(name) if private else export(home(), name, source, with_card=False)
        exported = export_jsonl(source_release, source, staged, form)
    if not private:
        _withheld(source_release)
    for file, rows in exported.written.items():
        terminal.line(f"{file}: {rows:,} rows")
    for reason, rows in exported.left_out.items():
        terminal.line(f"left out, {reason}: {rows:,} rows")


@app.command(rich_help_panel=GIVE, epilog="Example: gongqing restore v1 out/restored")
def restore(
    release: Annotated[str, typer.Argument(help="A release that came from the Hub.")],
    folder: Annotated[Path, typer.Argument(help="A new or an empty folder.")],
) -> None:
    """Put the words that a published release withholds back from this home's own crawl."""
    from pipelines.operations.release import releases_to_give
    from pipelines.release.publish.folder import restore_folder

    _, missing = restore_folder(releases_to_give(home()), release, terminal.store(), folder)
    terminal.line(f"{release}: restored in {folder}")
    if missing:
        terminal.line(f"{len(missing):,} texts are not here as they were, among them {', '.join(missing[:5])}")


def import_release(repo: str, revision: str) -> None:
    """Bring a release from the Hub into the home."""
    from pipelines.operations.release import releases_to_give
    from pipelines.release.publish.fetch import fetch

    with terminal.progress() as shown:
        release = fetch(releases_to_give(home()), repo, revision, progress=partial(shown.moved, "fetch"))
    terminal.line(f"{release.name}: {sum(map(release.rows, release.configs)):,} rows of {len(release.configs)} configs")


def _withheld(exported: Any) -> None:
    for finding in exported.findings:
        if finding.check in ("withheld", "left_out"):
            terminal.line(f"{finding.count:,} {finding.what}")
