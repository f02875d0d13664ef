"""`gongqing release`: nothing is released while a table is stale, nor while another process makes tables."""

from collections.abc import Collection
from pathlib import Path

from pipelines.core.home import Home
from pipelines.flow.runner import is_stale
from pipelines.flow.stages import STAGES
from pipelines.release.assemble import assemble, require_request
from pipelines.release.checks.released import finding
from pipelines.settings import Settings
from pipelines.store.release_manifest import Finding, Release
from pipelines.store.store import Store
from pipelines.store.suppression import alone


def release(home: Path, name: str, *, allow: Collection[str] = (), strict: bool = False, settings: Settings) -> Release:
    """Pin the current version of every table, check what would be released, and write it: see `assemble`.

    Raises Busy where a refresh is at work, and what `assemble` does.
    """
    require_request(name, allow)  # before anything is looked at, which takes a while
    with alone(home):
        stale = _stale(Store(Home(home).data), settings)
        return assemble(home, name, allow=allow, strict=strict, settings=settings, stale=stale)


def _stale(store: Store, settings: Settings) -> list[Finding]:
    """The tables that a refresh would make again, but for those that were never made: their sets are left out."""
    tables = [
        table
        for stage in STAGES
        if any(store.version_ids(table) for table in stage.tables) and is_stale(stage, store, settings)
        for table in stage.tables
    ]
    what = f"tables are not up to date: {', '.join(tables)}"
    return [finding("stale", what, "gongqing refresh", tables)] if tables else []
