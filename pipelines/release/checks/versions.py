"""Whether the versions that would be pinned are whole, and the sets that have no rows."""

from collections.abc import Iterator

from pipelines.errors import DamagedVersion
from pipelines.release.checks.released import CONFIGS, Released, finding
from pipelines.store.emptiness import why_empty
from pipelines.store.release_manifest import Finding
from pipelines.store.store import Store, Version
from schemas.tables import AFTER_RELEASE, TABLES


def pinned(store: Store) -> tuple[dict[str, Version], list[Finding]]:
    """The current version of every table and partition that a release may pin, by name, and what is damaged.

    Every file is read: what a release pins has to be whole.
    """
    pins: dict[str, Version] = {}
    damaged: list[str] = []
    for table in (table for table in TABLES if table not in AFTER_RELEASE):
        try:
            for version in store.current(table):
                pins[version.name] = version
                store.read(table, version.version, version.partition)
                store.read_dropped(table, version.version, version.partition)
        except DamagedVersion as error:
            damaged.append(f"{table}: {error.what}")
    if not damaged:
        return pins, []
    what = f"versions are damaged ({'; '.join(damaged)})"
    hint = "gongqing refresh makes them again; an imported or crawled table: import or crawl again"
    tables = {problem.partition(":")[0] for problem in damaged}
    return pins, [finding("damaged", what, hint, tables, count=len(damaged))]


def empty(released: Released) -> Iterator[Finding]:
    """Sets without a row, which are left out of the release; a release needs one at least."""
    if not released.configs:
        what = "there is nothing to release: no training set has a row"
        hint = (
            "gongqing tables shows what there is; import or crawl something, then gongqing refresh. "
            "Is this the home that you meant (GONGQING_HOME)?"
        )
        yield finding("empty", what, hint, CONFIGS)
        return
    missing = [config for config in CONFIGS if config not in released.configs]
    if missing:
        reasons = ", ".join(f"{config} ({_why(released, config)})" for config in missing)
        what = f"sets without a row are left out: {reasons}"
        hint = "gongqing show TABLE --dropped tells more; docs/training-sets.md says what each set is made from"
        yield finding("empty", what, hint, missing, severity="warn")


def _why(released: Released, table: str) -> str:
    version = released.pins.get(table)
    return "never made" if version is None else why_empty(released.store, version, released.pins)
