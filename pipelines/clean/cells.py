"""Cells: every text of a post or dialogue as a row of one long column, cleaned in one go, and put back.

A title, a description, an answer or a turn is a cell; the cells of one post or dialogue are a group, inside which a
placeholder means the same person or number.
"""

from collections.abc import Callable

import polars as pl

from pipelines.clean.normalise import Profile, normalised
from pipelines.settings import Cleaning
from pipelines.text.pii.placeholders import PATTERN
from pipelines.text.pii.redaction import redact, without_addresses
from pipelines.text.script import simplified
from pipelines.text.slices import with_rows
from schemas.posts import PII

NO_PII = pl.lit(pl.Series([[]], dtype=pl.List(PII.dtype)))

# A text that is put together again from what artefacts tore apart is read again; one made to draw this out is left
# after so many readings.
_READINGS = 6


def as_written(text: pl.Expr) -> pl.Expr:
    """`text` without artefacts and addresses, in Simplified Chinese, with all other personal data still in it.

    Language, ages and signs of risk are judged on this: a placeholder may stand where a sign stood (李叔叔摸我). It is
    for verdicts alone, and never stored.
    """
    return simplified(normalised(text)).map_batches(without_addresses, pl.String, is_elementwise=True)


def cleaned(cells: pl.DataFrame, cleaning: Cleaning) -> pl.DataFrame:
    """The cells with `text` free of personal data and artefacts, in Simplified Chinese; cleaning again changes nothing.

    Args:
        cells: `group`, `lang`, `text` and whatever else; a null stays one.
        cleaning: The profile, and whether names are looked for.

    Returns:
        The cells in their order, with `stored`: the text in the profile that is kept (`text` is in `default`), and
        `pii`: per cell a list of {kind, count}.
    """
    cells = cells.with_row_index("_row")
    texts, found = _settled(cells["text"], cells["group"], cells["_row"], cleaning.names, "default")
    stored = texts
    if cleaning.profile == "paper":  # it would leave nothing of an English dialogue
        chinese = cells.filter(pl.col("lang") == "zh")["_row"]
        # What it leaves stands closer together, and may read as a name.
        stored, found_in_paper = _settled(texts, cells["group"], chinese, cleaning.names, "paper")
        found = pl.concat([found, found_in_paper])
    counts = (
        found.group_by("row", "kind")
        .agg(pl.col("count").sum())
        .sort("row", "kind")
        .group_by("row", maintain_order=True)
        .agg(pii=pl.struct("kind", "count").cast(PII.dtype))
    )
    return (
        cells.with_columns(text=texts, stored=stored)
        .join(counts, left_on="_row", right_on="row", how="left", maintain_order="left")
        .drop("_row")
        .with_columns(pl.col("pii").fill_null(NO_PII))
    )


def _settled(
    texts: pl.Series, groups: pl.Series, rows: pl.Series, names: bool, profile: Profile
) -> tuple[pl.Series, pl.DataFrame]:
    """`texts` with those of `rows` redacted and normalised until nothing changes, and what was found: counts by row."""
    found = []
    for _ in range(_READINGS):
        # Personal data first: what hides them (➕V, zero-width characters) is an artefact that the next step takes
        # away. But what it takes away may have stood in the middle of a number: then that is whole only now.
        redacted = redact(texts.gather(rows), groups.gather(rows), names=names)
        found.append(redacted.counts.with_columns(row=rows.gather(redacted.counts["row"])))
        read = pl.DataFrame({"row": rows, "group": groups.gather(rows), "text": redacted.texts})
        read = read.with_columns(made=simplified(normalised(pl.col("text"), profile)))
        texts = with_rows(texts, rows, read["made"])
        # Whole groups, in which numbers of placeholders are given.
        changed = read.filter(pl.col("made") != pl.col("text"))["group"].unique()
        rows = read.filter(pl.col("group").is_in(changed.implode()))["row"]
        if rows.is_empty():
            break
    return texts, pl.concat(found)


def cleaned_labels(labels: pl.Series, cleaning: Cleaning) -> Callable[[pl.Expr], pl.Expr]:
    """A way to clean the labels and notes of a source, each different one read once and apart from the others.

    Args:
        labels: All that there are.
        cleaning: As in `cleaned`.

    Returns:
        a function from an expression of such labels to the same, cleaned in the default profile; null stays null.
    """
    distinct = labels.drop_nulls().unique()
    cells = pl.DataFrame({"group": pl.int_range(len(distinct), eager=True), "lang": "zh", "text": distinct})
    made = cleaned(cells, cleaning)["text"]
    return lambda label: label.replace_strict(distinct, made, default=None, return_dtype=pl.String)


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
