"""Exact duplicates: rows whose texts have the same key (`pipelines.text.key`).

The survivor of a cluster is the earliest, then the one with the smallest id. A post's survivor takes the answers of
all members; equal answers of one question are one.
"""

import polars as pl

from pipelines import text
from pipelines.drops import drops, gather


def merge_posts(posts: pl.DataFrame, stage: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Posts with `cluster_id` and `cluster_size`, one a text; drops in the units `post` and `answer`."""
    clustered = _clustered(posts, text.key(pl.col("text")), "post_id", ["posted_at", "post_id"])
    dropped_posts = clustered.filter(pl.col("post_id") != pl.col("cluster_id"))
    answers = (
        clustered.select("cluster_id", "answers")
        .explode("answers", empty_as_null=False)
        .with_columns(key=text.key(pl.col("answers").struct.field("text")))
        .with_columns(answer_id=pl.col("answers").struct.field("answer_id"))
        .with_columns(first=pl.col("answer_id").first().over("cluster_id", "key"))
    )
    repeated = answers.filter(pl.col("answer_id") != pl.col("first"))
    united = (
        answers.filter(pl.col("answer_id") == pl.col("first"))
        .group_by("cluster_id", maintain_order=True)
        .agg(answers=pl.col("answers"))
    )
    kept = (
        clustered.filter(pl.col("post_id") == pl.col("cluster_id"))
        .drop("answers")
        .join(united, on="cluster_id", how="left", maintain_order="left")
        .with_columns(pl.col("answers").fill_null([]))
    )
    return kept, gather(
        drops(dropped_posts, stage, "post", "post_id", pl.lit("duplicate"), _same_as("cluster_id")),
        drops(repeated, stage, "answer", "answer_id", pl.lit("duplicate"), _same_as("first")),
    )


def merge_dialogues(dialogues: pl.DataFrame, stage: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Dialogues with `cluster_id` and `cluster_size`, one for equal turns; drops in the unit `dialogue`."""
    turn = pl.element().struct
    whole = pl.col("turns").list.eval(turn.field("role") + ":" + text.key(turn.field("text"))).list.join("\n")
    clustered = _clustered(dialogues, whole, "dialogue_id", ["dialogue_id"])
    repeated = clustered.filter(pl.col("dialogue_id") != pl.col("cluster_id"))
    kept = clustered.filter(pl.col("dialogue_id") == pl.col("cluster_id"))
    return kept, gather(drops(repeated, stage, "dialogue", "dialogue_id", pl.lit("duplicate"), _same_as("cluster_id")))


def _clustered(frame: pl.DataFrame, key: pl.Expr, row_id: str, order: list[str]) -> pl.DataFrame:
    return (
        frame.with_columns(_key=key)
        .sort(order, nulls_last=True)
        .with_columns(
            cluster_id=pl.col(row_id).first().over("_key"),
            cluster_size=pl.len().over("_key").cast(pl.Int64),
        )
        .drop("_key")
    )


def _same_as(row: str) -> pl.Expr:
    return pl.format("same text as {}", pl.col(row))
