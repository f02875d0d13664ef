"""Old versions of tables, of which a daily refresh leaves many: which ones nothing needs, and their removal."""

from collections.abc import Iterator
from pathlib import Path

from pipelines.core.home import Home
from pipelines.store.releases import Releases
from pipelines.store.store import Store, Version
from pipelines.store.suppression import alone
from schemas.tables import TABLES

KEEP = 3  # of each table or partition, the newest: ours


def unneeded(home: Path, keep: int = KEEP) -> list[Version]:
    """The versions that are neither current, nor what a current one was made from, nor pinned by a release, nor among
    the `keep` (at least one) that were made last of their table or partition. A damaged one is left to `doctor`.

    Raises DamagedRelease where a release cannot be read: what it pins is not known.
    """
    store, releases = Store(Home(home).data), Releases(home)
    places = [(table, place) for table in TABLES for place in store.places(table)]
    current = [version for table in TABLES for version in store.current(table)]
    needed = {f"{version.name}@{version.version}" for version in current}
    for version in current:
        needed |= {f"{parent}@{of}" for parent, of in version.manifest.runs[-1].parents.items()}
    for name in releases.names():
        needed |= {f"{pin}@{of}" for pin, of in releases.read(name).pins.items()}
    return [
        version
        for place in places
        for version in _newest_first(store, *place)[max(keep, 1) :]
        if f"{version.name}@{version.version}" not in needed
    ]


def prune(home: Path, keep: int = KEEP) -> Iterator[tuple[Version, int]]:
    """Removes what `unneeded` gives, one after the other: each with the bytes that are free now; and what killed
    processes left half written.

    Raises Busy where a refresh, a release or an erasure is at work.
    """
    store = Store(Home(home).data)
    with alone(home):
        store.storage.sweep()
        for version in unneeded(home, keep):
            yield version, store.discard(version)


def _newest_first(store: Store, table: str, partition: str | None) -> list[Version]:
    """Of a version that was made several times, the last time counts."""
    versions = store.versions(table, partition)
    return sorted(versions, key=lambda one: max(run.at for run in one.manifest.runs), reverse=True)
