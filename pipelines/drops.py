"""How a step says what it did not keep: frames of `schemas.table.Dropped`."""

import polars as pl

from schemas.table import Dropped


def drops(frame: pl.DataFrame, stage: str, unit: str, row_id: str, reason: pl.Expr, detail: pl.Expr) -> pl.DataFrame:
    """The rows of `frame` as drops of one `unit`, named by the column `row_id`."""
    return frame.select(
        stage=pl.lit(stage),
        unit=pl.lit(unit),
        row_id=pl.col(row_id),
        reason=reason.cast(pl.String),
        detail=detail.cast(pl.String),
    )


def gather(*frames: pl.DataFrame) -> pl.DataFrame:
    """Drops of several kinds as one frame."""
    return pl.concat([Dropped.create_empty(), *frames], how="vertical")
