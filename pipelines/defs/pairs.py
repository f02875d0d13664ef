"""Merged pairs, for the eye: what was taken for nearly the same, beginning with what was least so."""

import polars as pl

from pipelines.store import Store, Version

_PAIRS = 10
_MERGED_FROM = {"unique_posts": "clean_posts", "unique_dialogues": "clean_dialogues"}


def presentable(rows: pl.DataFrame) -> pl.Expr:
    """Rows that may be shown outside of the tables: without signs of risk, and not by somebody below 18."""
    shown = pl.lit(True)
    if "risk" in rows.columns:
        shown &= pl.col("risk").list.len() == 0
    if "under_18" in rows.columns:
        shown &= ~pl.col("under_18")
    return shown


def merged_pairs(version: Version, rows: pl.DataFrame, dropped: pl.DataFrame, store: Store) -> pl.DataFrame | None:
    """Ten rows that were merged into others, the least similar first.

    Args:
        version: A version of any table.
        rows: Its rows.
        dropped: The rows that it dropped.
        store: Where the rows are that it was made from.

    Returns:
        `row`, `survivor`, `similarity`, `row_text`, `survivor_text`; None for a table in which nothing is merged.
    """
    parents = version.manifest.runs[-1].parents
    source = _MERGED_FROM.get(version.table, "")
    if source not in parents:
        return None
    row_id = rows.columns[0]
    pairs = dropped.filter(pl.col("reason") == "near_duplicate", pl.col("unit") != "answer").select(
        pl.col("row_id").alias("row"),
        pl.col("detail").str.extract(r"^([\d.]+) like ", 1).cast(pl.Float64).alias("similarity"),
        pl.col("detail").str.extract(r" like (.+)$", 1).alias("survivor"),
    )
    before = store.read(source, parents[source]).filter(
        pl.col(row_id).is_in(pl.concat([pairs["row"], pairs["survivor"]]).implode())
    )
    texts = before.collect().filter(presentable(rows)).select(row_id, text=_words(rows))
    return (
        pairs.join(texts.rename({row_id: "row", "text": "row_text"}), on="row")
        .join(texts.rename({row_id: "survivor", "text": "survivor_text"}), on="survivor")
        .sort("similarity", "row")
        .head(_PAIRS)
        .select("row", "survivor", "similarity", "row_text", "survivor_text")
    )


def _words(rows: pl.DataFrame) -> pl.Expr:
    if "text" in rows.columns:
        return pl.col("text")
    return pl.col("turns").list.eval(pl.element().struct.field("text")).list.join(" · ")
