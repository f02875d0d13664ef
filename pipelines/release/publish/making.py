"""How the rows of a release came about, in figures for its card: what each table kept, and which models were asked."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal

from pipelines.errors import UnknownName
from pipelines.store.release_manifest import Release
from pipelines.store.store import Store
from schemas.tables import TABLES

_REASONS = 3  # that are named


def funnel(store: Store, pins: Mapping[str, str]) -> list[tuple[str, int, int, str]]:
    """Of each pinned table, in the order of the flow: rows kept, dropped, and the most frequent reasons."""
    kept, dropped = Counter[str](), Counter[str]()
    reasons: dict[str, Counter[str]] = {}
    for name, pinned in pins.items():
        table, _, partition = name.partition("/")
        with suppress(UnknownName):  # of a version that is gone nothing is known
            version = store.version(table, pinned, partition or None)
            kept[table] += version.rows
            dropped[table] += version.dropped
            reasons.setdefault(table, Counter()).update(version.manifest.reasons)
    return [
        (
            table,
            kept[table],
            dropped[table],
            ", ".join(f"{why} {n:,}" for why, n in reasons[table].most_common(_REASONS)),
        )
        for table in TABLES
        if kept[table] or dropped[table]
    ]


def models(release: Release) -> list[tuple[str, str, int, str]]:
    """What each model was asked for, how often, and what it cost, as the manifest has it; last the sums."""
    rows = [(one.stage, one.model, one.calls, one.usd) for one in release.spend]
    sums: dict[str, Decimal] = {}
    for *_, spent in rows:
        amount, _, currency = spent.partition(" ")
        sums[currency] = sums.get(currency, Decimal()) + Decimal(amount)
    total = " + ".join(f"{amount:f} {currency}".strip() for currency, amount in sorted(sums.items()))
    return [*rows, ("all", "", sum(row[2] for row in rows), total)] if len(rows) > 1 else rows
