"""Why a version of a table has no rows: one answer for the list of tables, the assets and the checks of a release."""

from collections.abc import Mapping

from pipelines.store.store import Store, Version

_LABELS = "cer_labels"
_OF_LABELS = frozenset({"sft_cer", "rm_process", "rm_outcome", "rm_unified"})  # sets that people's labels make
_REASONS = 2  # for which most rows were dropped


def why_empty(store: Store, version: Version, pins: Mapping[str, Version] | None = None) -> str:
    """Why a version has no rows, in words; empty where it has some.

    Either the reasons for which most rows were dropped, or that labels or a parent are missing or empty. A release
    looks in its `pins` alone: `table` or `table/partition` → version.
    """
    if version.rows:
        return ""
    if reasons := sorted(version.manifest.reasons.items(), key=lambda reason: -reason[1])[:_REASONS]:
        return f"{version.table} dropped " + ", ".join(f"{name} {rows:,}" for name, rows in reasons)
    parents = version.manifest.runs[-1].parents
    if version.table in _OF_LABELS and _LABELS not in parents:
        return "people have labelled nothing (gongqing review export cer; docs/reviewing.md)"
    for name, of_parent in parents.items():
        table, _, partition = name.partition("/")
        if pins is not None:
            parent = pins.get(name)
        elif of_parent in store.version_ids(table, partition or None):
            parent = store.version(table, of_parent, partition or None)
        else:
            parent = None  # removed since
        if parent is not None and not parent.rows:
            return why_empty(store, parent, pins)
    return "there was nothing to make it from"
