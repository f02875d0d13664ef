"""Cells: every text of a post or dialogue as a row of one long column, cleaned in one go, and put back.

A title, a description, an answer or a turn is a cell; the cells of one post or dialogue are a group, inside which a
placeholder means the same person or number.
"""

import polars as pl

from pipelines.clean.normalise import normalised
from pipelines.clean.personal_data.placeholders import PATTERN
from pipelines.clean.personal_data.redaction import redact
from pipelines.clean.script import simplified
from pipelines.settings import Cleaning
from schemas.posts import PII

NO_PII = pl.lit(pl.Series([[]], dtype=pl.List(PII.dtype)))


def cleaned(cells: pl.DataFrame, cleaning: Cleaning) -> pl.DataFrame:
    """The cells with `text` free of personal data and artefacts, in Simplified Chinese.

    Args:
        cells: `group`, `lang`, `text` and whatever else; a null stays one.
        cleaning: The profile, and whether names are looked for.

    Returns:
        The cells in their order, with `pii`: per cell a list of {kind, count}.
    """
    # Personal data first: what hides them (➕V, zero-width characters) is an artefact that the next step takes away.
    redacted = redact(cells["text"], cells["group"], names=cleaning.names)
    counts = (
        redacted.counts.sort("row", "kind")
        .group_by("row", maintain_order=True)
        .agg(pii=pl.struct("kind", "count").cast(PII.dtype))
    )
    text = normalised(pl.col("text"))
    if cleaning.profile == "paper":  # it would leave nothing of an English dialogue
        text = pl.when(pl.col("lang") == "zh").then(normalised(pl.col("text"), "paper")).otherwise(text)
    return (
        cells.with_columns(text=redacted.texts)
        .with_columns(text=simplified(text))
        .with_row_index("_row")
        .join(counts, left_on="_row", right_on="row", how="left", maintain_order="left")
        .drop("_row")
        .with_columns(pl.col("pii").fill_null(NO_PII))
    )


def counted(cells: pl.DataFrame) -> pl.DataFrame:
    """`group`, `pii`: the counts of all cells of each group that has any."""
    return (
        cells.select("group", "pii")
        .filter(pl.col("pii").list.len() > 0)
        .explode("pii")
        .unnest("pii")
        .group_by("group", "kind")
        .agg(pl.col("count").sum())
        .sort("group", "kind")
        .group_by("group", maintain_order=True)
        .agg(pii=pl.struct("kind", "count").cast(PII.dtype))
    )


def said(text: pl.Expr) -> pl.Expr:
    """`text` without placeholders: what a person wrote of it."""
    return text.str.replace_all(PATTERN, "")
