"""A calibration: the rules of a home are measured, and the figures kept."""

import datetime as dt
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipelines.core.files import sha256_of
from pipelines.core.home import Home
from pipelines.errors import UnknownName
from pipelines.operations.calibrate.figures import Figures
from pipelines.operations.calibrate.gold import read_gold
from pipelines.operations.calibrate.measuring import Mistake, measure
from pipelines.release.checks.calibrated import rules_of
from pipelines.settings import Settings
from pipelines.store.store import Store
from pipelines.store.suppression import alone
from schemas.calibrations import Calibrations
from schemas.labels import CALIBRATED

TABLE = "calibrations"


class Calibrated(NamedTuple):
    """Rows of `calibrations` of a stage and a file, and what went wrong, which is not kept."""

    rows: pl.DataFrame
    mistakes: list[Mistake]


def calibrate(home: Path, stage: str, gold: Path, settings: Settings) -> Calibrated:
    """Measures a stage by a file of labelled posts, and puts the figures in the place of earlier ones of that file.

    The same figures of the same rules change nothing.

    Raises UnknownName for another stage, UnreadableFile for the file, Busy where another process makes tables.
    """
    if stage not in CALIBRATED:
        raise UnknownName("stage to calibrate", stage, CALIBRATED)
    store = Store(Home(home).data)
    measured = measure(stage, read_gold(gold, stage, store), settings)
    more = {"gold": gold.name, "gold_sha256": sha256_of(gold), "measured_at": dt.datetime.now(dt.UTC)}
    rows = [_row(figures) | more | rules_of(stage, settings) for figures in measured.figures]
    frame = Calibrations.validate(pl.DataFrame(rows, schema=Calibrations.polars_schema()))
    with alone(home):
        return Calibrated(_kept(store, frame, stage, gold.name), measured.mistakes)


def _row(figures: Figures) -> dict[str, Any]:
    row = asdict(figures)
    for name, estimate in (("precision", figures.precision), ("recall", figures.recall)):
        ends = ("", "_low", "_high")
        row |= {name + end: value for end, value in zip(ends, estimate or (None, None, None), strict=True)}
    return row


def _kept(store: Store, rows: pl.DataFrame, stage: str, gold: str) -> pl.DataFrame:
    """The rows as they are kept: those that are there already, where only the time is another."""
    before = store.read(TABLE).collect() if store.current(TABLE) else rows.clear()
    mine = (pl.col("stage") == stage) & (pl.col("gold") == gold)
    stood = before.filter(mine)
    if stood.drop("measured_at").sort("kind").equals(rows.drop("measured_at").sort("kind")):
        return rows.with_columns(stood["measured_at"].first())
    store.write(TABLE, pl.concat([before.filter(~mine), rows]))
    return rows
