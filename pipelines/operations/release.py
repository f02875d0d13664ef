"""A release is made, and what of it may be published leaves the home: in a folder or to the Hub.

Nothing is released while a table is stale, nor while another process makes tables.
"""

from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.core.home import Home
from pipelines.errors import RequestError
from pipelines.release.publish.client import Progress, hub_client, require_repo
from pipelines.release.publish.folder import export_folder
from pipelines.release.publish.hub import Published, publish
from pipelines.release.publish.public import is_public
from pipelines.settings import Settings
from pipelines.store.release_manifest import Finding, Release
from pipelines.store.releases import UNKNOWN, Releases, note_publication
from pipelines.store.store import Store
from pipelines.store.suppression import alone, require_no_erasure


def release(home: Path, name: str, *, allow: Collection[str] = (), strict: bool = False, settings: Settings) -> Release:
    """Pin the current version of every table, check what would be released, and write it: see `assemble`.

    Raises Busy where a refresh is at work, and what `assemble` does.
    """
    from pipelines.release.assemble import assemble, require_request

    require_request(name, allow)  # before anything is looked at, which takes a while
    with alone(home):
        stale = _stale(Store(Home(home).data), settings)
        return assemble(home, name, allow=allow, strict=strict, settings=settings, stale=stale)


def _stale(store: Store, settings: Settings) -> list[Finding]:
    """The tables that a refresh would make again, but for those that were never made: their sets are left out. One that
    only lacks answers is released with what was paid for, and a warning.
    """
    from pipelines.flow.runner import Runner
    from pipelines.flow.stages import STAGES
    from pipelines.release.checks.released import finding

    runner = Runner(store, settings)
    made = [stage for stage in STAGES if any(map(store.version_ids, stage.tables))]
    outdated = [stage for stage in made if runner.is_outdated(stage)]
    tables = [table for stage in outdated for table in stage.tables]
    lacking = {stage.name: rows for stage in made if stage not in outdated and (rows := runner.open_questions(stage))}
    listed = []
    if tables:
        what = f"tables are not up to date: {', '.join(tables)}"
        listed.append(finding("stale", what, "gongqing refresh", tables))
    if lacking:
        what = f"rows lack answers: {', '.join(f'{name} {rows:,}' for name, rows in lacking.items())}"
        hint = "a refresh with a greater --budget asks for them; [annotate.sizes] and [rewrite.sizes] ask about fewer"
        listed.append(finding("unanswered", what, hint, lacking, severity="warn"))
    return listed


def releases_to_give(home: Path) -> Releases:
    """The releases of a home, to publish or to add to.

    Raises Busy while an erasure is unfinished: what it removes must not leave the home meanwhile.
    """
    require_no_erasure(home)
    return Releases(home)


def chosen(releases: Releases, name: str | None) -> str:
    """The release of that name, or the current one. Raises RequestError where there is none."""
    if name is not None:
        return name
    current = releases.current()
    if current is None:
        there = ", ".join(releases.names())
        raise RequestError(
            "no release of this home is the current one",
            where=releases.storage.uri(""),
            hint=f"name one with --release: {there}" if there else "gongqing release NAME",
        )
    return current.name


def export(home: Path, name: str | None, target: Path, repo: str = "", *, with_card: bool = True) -> Release:
    """Write what may be published of a release, or of the current one, to a new or empty folder, with its card or not.

    Returns the release as it is published; raises what `export_folder` does, and Busy.
    """
    from pipelines.operations.paper_tables import paper_tables

    with Home(home).lock("giving", shared=True):  # no erasure begins that would not know of the copy
        releases, store = releases_to_give(home), Store(Home(home).data)
        release = releases.read(chosen(releases, name))
        # Of a release from elsewhere the tables behind it are not here.
        ours = not is_public(release, releases.folder(release.name)) and "unique_posts" in release.pins
        tables = list(paper_tables(store, pins=release.pins).values()) if ours and with_card else []
        if with_card and store.partitions(
            "evaluations"
        ):  # of a home that measured something: what shows figures is heavy
            from pipelines.operations.evaluate.report import data_table

            measured = data_table(store, release.name, release.content)
            tables += [] if measured is None else [measured]
        return export_folder(releases, release.name, store, target, tables, repo, with_card=with_card)


def to_hub(
    home: Path, name: str | None, repo: str, *, public: bool = False, progress: Progress | None = None
) -> tuple[Release, Published]:
    """Put what may be published of a release, or of the current one, on the Hub, and note where it is published.

    Returns the release as it is published, and where. Raises what `export` and `publish` do.
    """
    require_repo(repo)  # this and the token first: the rest takes a while
    hub_client()
    with Home(home).lock("giving", shared=True), TemporaryDirectory() as scratch:
        folder = Path(scratch) / "release"
        release = export(home, name, folder, repo)
        published = publish(
            release,
            folder,
            repo,
            private=not public,
            progress=progress,
            before_commit=lambda: note_publication(home, repo, release.name, UNKNOWN),
        )
        note_publication(home, published.repo, published.tag, published.commit)
    return release, published
