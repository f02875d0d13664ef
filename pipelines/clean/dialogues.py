"""Dialogues: cleaned, and filtered."""

import polars as pl

from pipelines.clean.cells import NO_PII, cleaned, counted, said
from pipelines.clean.measures import han_ratio, n_chars
from pipelines.clean.minors import under_14, under_18
from pipelines.clean.risk import risk
from pipelines.clean.script import script
from pipelines.clean.shares import in_shares
from pipelines.drops import drops, gather
from pipelines.settings import Cleaning, Filters
from schemas.dialogues import CleanDialogues, ImportedDialogues
from schemas.table import Dropped

STAGE = "clean_dialogues"


def clean_dialogues(
    frame: pl.DataFrame | pl.LazyFrame, filters: Filters | None = None, cleaning: Cleaning | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Dialogues of at least one round, in the language that their set says.

    Artefacts and personal data are taken out of every turn first. A turn that was nothing else keeps a sign of what
    stood there, so that the roles still alternate: `[表情]`.

    Args:
        frame: Rows of `imported_dialogues`.
        filters: The thresholds; the papers' where none are given.
        cleaning: How texts are cleaned.

    Returns:
        `(kept, dropped)`: rows of `clean_dialogues`, and drops in the unit `dialogue`.
    """
    filters, cleaning = filters or Filters(), cleaning or Cleaning()
    dialogues = frame.lazy().select(ImportedDialogues.column_names()).collect().with_row_index("group")
    judged = in_shares(lambda some: _judged(_with_texts(some, cleaned(_cells(some), cleaning)), filters), dialogues)
    refused = judged.filter(pl.col("reason").is_not_null())
    dropped = gather(drops(refused, STAGE, "dialogue", "dialogue_id", pl.col("reason"), pl.col("detail")))
    kept = judged.filter(pl.col("reason").is_null()).with_columns(risk=risk(pl.col("asked"), simplified=True))
    return CleanDialogues.cast(kept.select(CleanDialogues.column_names())), Dropped.cast(dropped)


def _cells(dialogues: pl.DataFrame) -> pl.DataFrame:
    """`group`, `lang`, `place` (-1 the situation, from 0 the turns) and `text`."""
    turns = _turns(dialogues)
    return pl.concat(
        [
            dialogues.select("group", "lang", place=pl.lit(-1, pl.Int64), text="situation"),
            turns.select("group", "lang", "place", "text"),
        ]
    )


def _turns(dialogues: pl.DataFrame) -> pl.DataFrame:
    """One row a turn: `group`, `lang`, `place` and its fields."""
    turns = dialogues.select("group", "lang", "turns").explode("turns", empty_as_null=False).unnest("turns")
    return turns.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64).over("group"))


def _with_texts(dialogues: pl.DataFrame, cells: pl.DataFrame) -> pl.DataFrame:
    """The dialogues with the cleaned texts in their places, `script` as they were written in, and `pii`."""
    fields = [field.name for field in dialogues.schema["turns"].inner.fields]  # type: ignore[attr-defined]
    written = cells.filter(pl.col("place") >= 0).select("group", "place", cleaned="text")
    shown = pl.when(pl.col("cleaned") != "").then("cleaned").otherwise(pl.lit("[表情]"))
    turns = (
        _turns(dialogues)
        .join(written, on=["group", "place"], how="left", maintain_order="left")
        .with_columns(text=shown)
        .group_by("group", maintain_order=True)
        .agg(turns=pl.struct(fields))
    )
    situation = cells.filter(place=-1).get_column("text")
    return (
        dialogues.with_columns(script=script(_said()), situation=situation)
        .drop("turns")
        .join(turns, on="group", how="left", maintain_order="left")
        .join(counted(cells), on="group", how="left", maintain_order="left")
        .with_columns(pl.col("turns").fill_null([]), pl.col("pii").fill_null(NO_PII))
    )


def _judged(dialogues: pl.DataFrame, filters: Filters) -> pl.DataFrame:
    """What is measured of each dialogue, and the `reason` (with its `detail`) to drop it, null where there is none."""
    measured = (
        dialogues.lazy()
        .with_columns(said=_said(), asked=_said(of_seeker=True))
        .with_columns(
            n_chars=n_chars(pl.col("said")),
            han_ratio=han_ratio(said(pl.col("said"))),
            under_14=under_14(pl.col("asked")),
            under_18=under_18(pl.col("asked")),
        )
    )
    chinese = pl.col("han_ratio") >= filters.min_han_ratio
    share = pl.format("Chinese share {}", pl.col("han_ratio").round(2))
    reasons = (
        (pl.col("n_rounds") == 0, pl.lit("no_round"), pl.lit("no seeker turn that a supporter turn answers")),
        ((pl.col("lang") == "zh") & ~chinese, pl.lit("not_chinese"), share),
        ((pl.col("lang") == "en") & chinese, pl.lit("not_english"), share),
        (pl.col("under_14"), pl.lit("under_14"), pl.lit("the seeker says to be younger than 14")),
    )
    first = pl.coalesce(pl.when(holds).then(pl.struct(reason=name, detail=told)) for holds, name, told in reasons)
    return measured.with_columns(first.struct.unnest()).collect()


def _said(*, of_seeker: bool = False) -> pl.Expr:
    """All turns below each other, or those of the seeker."""
    turn = pl.element().struct
    words = turn.field("text").filter(turn.field("role") == "seeker") if of_seeker else turn.field("text")
    return pl.col("turns").list.eval(words).list.join("\n")
