"""Whether the versions that would be pinned are whole, and the sets that have no rows."""

from collections.abc import Iterator

from pipelines.errors import DamagedVersion
from pipelines.release.checks.released import CONFIGS, Released
from pipelines.release.manifest import Finding
from pipelines.store.store import Store, Version
from schemas.tables import TABLES


def pinned(store: Store) -> tuple[dict[str, Version], list[Finding]]:
    """The current version of every table and partition by its name, and what is damaged among them.

    Every file is read: what a release rests on has to be there when somebody asks.
    """
    pins: dict[str, Version] = {}
    damaged: list[str] = []
    for table in TABLES:
        try:
            for version in store.current(table):
                pins[version.name] = version
                store.read(table, version.version, version.partition)
                store.read_dropped(table, version.version, version.partition)
        except DamagedVersion as error:
            damaged.append(f"{table}: {error.what}")
    if not damaged:
        return pins, []
    finding = Finding(
        check="damaged",
        severity="refuse",
        count=len(damaged),
        what=f"versions are damaged ({'; '.join(damaged)})",
        remedy="gongqing refresh makes them anew; of an imported or crawled table, import or crawl again",
        examples=sorted({told.partition(":")[0] for told in damaged}),
    )
    return pins, [finding]


def empty(released: Released) -> Iterator[Finding]:
    """Sets without a row: left out of the release."""
    missing = [config for config in CONFIGS if config not in released.configs]
    if missing:
        yield Finding(
            check="empty",
            severity="warn",
            count=len(missing),
            what=f"sets without a row are left out: {', '.join(missing)}",
            remedy="gongqing refresh makes what it can; some wait for people's labels, or for a budget",
            examples=missing,
        )
