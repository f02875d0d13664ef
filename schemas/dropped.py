"""How a step says what it did not keep: frames of `schemas.table.Dropped`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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


Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Lost:
    """Why one unit of a row is not kept. `detail` holds ids, figures and kinds, nothing that somebody wrote."""

    unit: str
    row_id: str
    reason: str
    detail: str | None = None


def dropped(stage: str, lost: Sequence[Lost]) -> pl.DataFrame:
    """Rows of `Dropped`, in the order given."""
    return gather(
        pl.DataFrame(
            [(stage, one.unit, one.row_id, one.reason, one.detail) for one in lost],
            schema=Dropped.polars_schema(),
            orient="row",
        )
    )
