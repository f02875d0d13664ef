"""The first filters of dialogues."""

import polars as pl

from pipelines import text
from pipelines.clean.risk import risk
from pipelines.clean.script import script
from pipelines.drops import drops, gather
from pipelines.settings import Filters
from schemas.dialogues import CleanDialogues
from schemas.table import Dropped

STAGE = "clean_dialogues"


def clean_dialogues(
    frame: pl.DataFrame | pl.LazyFrame, filters: Filters | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Dialogues of at least one round, in the language that their set says.

    Args:
        frame: Rows of `imported_dialogues`.
        filters: The thresholds; the papers' where none are given.

    Returns:
        `(kept, dropped)`: rows of `clean_dialogues`, and drops in the unit `dialogue`.
    """
    filters = filters or Filters()
    dialogues = (
        frame.lazy()
        .with_columns(said=_said(pl.element().struct.field("text")), asked=_said(_of_seeker()))
        .with_columns(n_chars=text.n_chars(pl.col("said")), han_ratio=text.han_ratio(pl.col("said")))
        .with_columns(
            reason=pl.when(pl.col("n_rounds") == 0)
            .then(pl.lit("no_round"))
            .when((pl.col("lang") == "zh") & (pl.col("han_ratio") < filters.min_han_ratio))
            .then(pl.lit("not_chinese"))
            .when((pl.col("lang") == "en") & (pl.col("han_ratio") >= filters.min_han_ratio))
            .then(pl.lit("not_english"))
        )
        .collect()
    )
    refused = dialogues.filter(pl.col("reason").is_not_null())
    detail = (
        pl.when(pl.col("reason") == "no_round")
        .then(pl.lit("no seeker turn that a supporter turn answers"))
        .otherwise(pl.format("Chinese share {}", pl.col("han_ratio").round(2)))
    )
    dropped = gather(drops(refused, STAGE, "dialogue", "dialogue_id", pl.col("reason"), detail))
    kept = dialogues.filter(pl.col("reason").is_null()).with_columns(
        script=script(pl.col("said")),
        pii=pl.lit(None),
        risk=risk(pl.col("asked")),
    )
    return CleanDialogues.cast(kept.select(CleanDialogues.column_names())), Dropped.cast(dropped)


def _said(element: pl.Expr) -> pl.Expr:
    return pl.col("turns").list.eval(element).list.join("\n")


def _of_seeker() -> pl.Expr:
    turn = pl.element().struct
    return turn.field("text").filter(turn.field("role") == "seeker")
