"""Whether the versions that would be pinned are whole, and the sets that have no rows."""

from collections.abc import Iterator

from pipelines.errors import DamagedVersion
from pipelines.release.checks.released import CONFIGS, Released
from pipelines.store.release_manifest import Finding
from pipelines.store.store import Store, Version
from schemas.tables import AFTER_RELEASE, TABLES

_LABELS = "cer_labels"
_OF_LABELS = ("sft_cer", "rm_process", "rm_outcome", "rm_unified")  # sets that people\'s labels make


def pinned(store: Store) -> tuple[dict[str, Version], list[Finding]]:
    """The current version of every table and partition that a release may rest on by its name, and what is damaged.

    Every file is read: what a release rests on has to be there when somebody asks.
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
    finding = Finding(
        check="damaged",
        severity="refuse",
        count=len(damaged),
        what=f"versions are damaged ({'; '.join(damaged)})",
        hint="gongqing refresh makes them anew; of an imported or crawled table, import or crawl again",
        examples=sorted({told.partition(":")[0] for told in damaged}),
    )
    return pins, [finding]


def empty(released: Released) -> Iterator[Finding]:
    """Sets without a row are left out of the release; one of no row at all is none."""
    if not released.configs:
        yield Finding(
            check="empty",
            severity="refuse",
            count=len(CONFIGS),
            what="there is nothing to release: no training set has a row",
            hint="gongqing tables shows what there is; import or crawl something, then gongqing refresh. "
            "Is this the home that you meant (GONGQING_HOME)?",
            examples=list(CONFIGS),
        )
        return
    missing = [config for config in CONFIGS if config not in released.configs]
    if missing:
        told = ", ".join(f"{config} ({_why(released, config)})" for config in missing)
        yield Finding(
            check="empty",
            severity="warn",
            count=len(missing),
            what=f"sets without a row are left out: {told}",
            hint="gongqing show TABLE --dropped tells more; docs/training-sets.md says what each set is made from",
            examples=missing,
        )


def _why(released: Released, table: str) -> str:
    """Why a table has no row: what most was dropped for, in it or in a table before it that has none either."""
    version = released.pins.get(table)
    if version is None:
        return "never made"
    if reasons := version.manifest.reasons:
        reason, rows = max(reasons.items(), key=lambda told: told[1])
        return f"{table} dropped {rows:,}: {reason.partition(': ')[2]}"
    before = [released.pins[parent] for parent in version.manifest.runs[-1].parents if parent in released.pins]
    if found := [one for one in before if not one.rows and one.manifest.reasons]:
        return _why(released, found[0].name)
    unlabelled = table in _OF_LABELS and _LABELS not in released.pins
    return "nobody has labelled anything" if unlabelled else "what it is made from has no row"
