"""Checks that warn and block nothing: a table that is empty, lost much, or is not what its version before was.

The thresholds are ours. Small tables are not compared: their shares and means move by a few rows.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import dagster as dg

from pipelines.defs.resources import HomeResource
from pipelines.defs.samples import texts_length
from pipelines.errors import DamagedVersion, OlderSchema
from pipelines.flow.stages import STAGES
from pipelines.llm.questions import ASKED_AGAIN, NOT_SAMPLED, NOT_WRITTEN
from pipelines.store.store import Store, Version

LEAST = 30  # rows from which on two versions are compared
LENGTH = 0.25  # of the mean length of its texts
REASON = 0.15  # of all that came in, by which the share of a reason moved

# Reasons of rows that wait for a model or for people, or had no room: how many they are says nothing of the texts.
_WAITS = (*ASKED_AGAIN, NOT_SAMPLED, NOT_WRITTEN, "not_labelled", "not_reviewed")
_CHECKS = {
    "not_empty": "it has rows, unless nothing came in, or all that came waits for a model or for people",
    "not_shrunk": f"it has not lost more than a third of its rows since its version before (from {LEAST} rows on)",
    "not_drifted": (
        f"since its version before the mean length of its texts has moved by less than {LENGTH:.0%}, and no reason's"
        f" share of what came in by more than {REASON:.0%} (from {LEAST} rows on)"
    ),
}
_Result = tuple[bool, Mapping[str, Any]]


def version_before(version: Version, store: Store) -> Version | None:
    """The newest version of a table that was made before `version`; None of the first."""
    at = version.manifest.runs[-1].at
    earlier = [one for one in store.versions(version.table, version.partition) if one.manifest.runs[-1].at < at]
    return max(earlier, key=lambda one: one.manifest.runs[-1].at, default=None)


def find_trends(version: Version, store: Store) -> dict[str, _Result]:
    """Of each check whether it holds for a version, and figures that say why."""
    before = version_before(version, store)
    return {
        "not_empty": _not_empty(version, before),
        "not_shrunk": _not_shrunk(version, before),
        "not_drifted": _not_drifted(version, before, store),
    }


def _not_empty(version: Version, before: Version | None) -> _Result:
    had_rows = before is not None and before.rows > 0
    lost = version.dropped - version.manifest.dropped_for(*_WAITS)
    return version.rows > 0 or not (had_rows or lost), {"rows": version.rows, "dropped": version.dropped}


def _not_shrunk(version: Version, before: Version | None) -> _Result:
    if before is None:
        return True, {"rows": version.rows}
    holds = before.rows < LEAST or 3 * version.rows >= 2 * before.rows
    return holds, {"rows": version.rows, "rows_before": before.rows}


def _not_drifted(version: Version, before: Version | None, store: Store) -> _Result:
    if before is None or min(version.rows, before.rows) < LEAST:
        return True, {"compared": "with nothing: there is no version before, or one of the two is small"}
    moved: dict[str, str] = {}
    figures: dict[str, float] = {}
    shares, shares_before = _shares(version), _shares(before)
    for reason in sorted(shares.keys() | shares_before.keys()):
        now, then = shares.get(reason, 0.0), shares_before.get(reason, 0.0)
        if abs(now - then) > REASON:
            moved[reason] = f"{then:.0%} of what came in, now {now:.0%}"
    with suppress(DamagedVersion, OlderSchema):  # what cannot be read today is not compared
        lengths = _mean_length(version, store), _mean_length(before, store)
        if None not in lengths:
            figures = dict(zip(("mean_chars", "mean_chars_before"), lengths, strict=True))  # type: ignore[arg-type]
            if abs(figures["mean_chars"] / figures["mean_chars_before"] - 1) > LENGTH:
                moved["mean length"] = "{mean_chars_before:.0f} characters, now {mean_chars:.0f}".format(**figures)
    return not moved, {**figures, **moved}


def _shares(version: Version) -> dict[str, float]:
    """The share of each reason in all that came in, but for what waits."""
    reasons = {name: lost for name, lost in version.manifest.reasons.items() if name.partition(": ")[2] not in _WAITS}
    came = version.rows + sum(reasons.values())
    return {name: lost / came for name, lost in reasons.items()}


def _mean_length(version: Version, store: Store) -> float | None:
    """The mean length of the texts of a row; None where a table has none.

    Raises DamagedVersion, or OlderSchema, for a version that cannot be read, or whose columns mean something else.
    """
    length = texts_length(version.table)
    if length is None:
        return None
    store.check(version)
    store.require_todays(version)
    mean = store.read(version.table, version.version, version.partition).select(length.mean()).collect().item()
    return round(mean, 1) or None


def _trends(table: str) -> dg.AssetChecksDefinition:
    specs = [dg.AssetCheckSpec(name, asset=table, description=about) for name, about in _CHECKS.items()]

    @dg.multi_asset_check(name=f"{table}_trends", specs=specs)
    def check(home: dg.ResourceParam[HomeResource]) -> Iterator[dg.AssetCheckResult]:
        store = home.store()
        made = table not in home.left and store.pointer(table) is not None
        results = find_trends(store.version(table), store) if made else dict.fromkeys(_CHECKS, _NOT_MADE)
        for name, (holds, shown) in results.items():
            yield dg.AssetCheckResult(
                asset_key=table, check_name=name, passed=holds, severity=dg.AssetCheckSeverity.WARN, metadata=shown
            )

    return check


_NOT_MADE: _Result = (True, {"state": "never made, or left as it stood"})
checks = [_trends(table) for stage in STAGES for table in stage.tables]
