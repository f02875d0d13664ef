"""Figures of a version, by which one table is followed over time: the web UI plots numbers, and no words."""

from pathlib import Path

import polars as pl

from pipelines.core.home import Home
from pipelines.core.stage import Stage
from pipelines.defs.samples import texts_length
from pipelines.flow.stages import MAKERS
from pipelines.llm.ledger.ledger import Ledger
from pipelines.store.reconciliation import count
from pipelines.store.store import Version
from schemas.labels import SPLITS

Figures = dict[str, int | float]

_DUPLICATE = "near_duplicate"
_OF_IMPORTS = ("record",)


def figures(version: Version, rows: pl.DataFrame) -> Figures:
    """What is counted of a version: rows, what of each unit was kept, duplicates, personal data, lengths, splits."""
    # Of partitions Dagster adds up what stands under a key of its own.
    key = "dagster/row_count" if version.partition is None else "dagster/partition_row_count"
    return {
        key: version.rows,
        "dropped": version.dropped,
        **_kept_shares(version, rows),
        **_duplicates(version),
        **_of_rows(version.table, rows),
    }


def _kept_shares(version: Version, rows: pl.DataFrame) -> Figures:
    """The share that was kept of each unit that came in: `kept_share` of the first, which is what its rows are."""
    stage = MAKERS.get(version.table)
    units = tuple(stage.units.get(version.table, ())) if stage else _OF_IMPORTS
    shares: Figures = {}
    for unit in units:
        kept = count(rows, unit)
        lost = sum(dropped for reason, dropped in version.manifest.reasons.items() if reason.startswith(f"{unit}: "))
        if kept + lost:
            shares["kept_share" if unit == units[0] else f"kept_share_{unit}"] = round(kept / (kept + lost), 4)
    return shares


def _duplicates(version: Version) -> Figures:
    stage = MAKERS.get(version.table)
    return {"duplicates": version.manifest.dropped_for(_DUPLICATE)} if stage and stage.name == "unique" else {}


def _of_rows(table: str, rows: pl.DataFrame) -> Figures:
    counted: Figures = {}
    if "pii" in rows.columns:
        places = rows["pii"].list.eval(pl.element().struct.field("count")).list.sum()
        counted["personal_data"] = int(places.sum())
    if (length := texts_length(table)) is not None and rows.height:
        counted["mean_chars"] = round(rows.select(length.mean()).item(), 1)
    if "split" in rows.columns:
        counted |= {f"rows_{split}": rows.filter(pl.col("split") == split).height for split in SPLITS}
    return counted


def spent(home: Path, stage: Stage) -> Figures:
    """What a stage has asked so far, and what it cost, by currency, as the ledger of the home has it."""
    if not stage.asks or not Home(home).ledger.exists():
        return {}
    with Ledger(Home(home).ledger) as ledger:
        of_stage = [one for one in ledger.spend() if one.stage == stage.name]
    names = {"calls": "calls", "repairs": "repairs", "failed_calls": "failed"}
    totals: Figures = {name: sum(getattr(one, field) for one in of_stage) for name, field in names.items()}
    for one in of_stage:
        cost = f"cost_{one.currency}"
        totals[cost] = totals.get(cost, 0) + float(one.cost)
    return totals
