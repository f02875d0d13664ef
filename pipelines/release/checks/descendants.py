"""What is made from a row belongs to the row's group, and a group to one split (DESIGN §2.8)."""

from collections.abc import Collection, Iterator

import polars as pl

from pipelines.release.checks.released import Released, finding, origin
from pipelines.store.release_manifest import Finding

# Tables that are made of training rows alone, each with the column that leads to what a row was made from.
MADE_OF_TRAINING_ROWS = {
    "ecot_chains": "post_id",
    "coe_chains": "post_id",
    "cer_candidates": "dialogue_id",
    "cer_labels": "dialogue_id",
    "disc_profiles": "dialogue_id",
    "personas": "persona_id",
    "rewrite_drafts": "dialogue_id",
    "rewrite_judgements": "row_id",
    "rewritten_dialogues": "source_dialogue_id",
    "rewritten_rounds": "source_dialogue_id",
}

_REFRESH = "an older version was promoted, or a table was edited: gongqing refresh, without --select"


def descendants(released: Released) -> Iterator[Finding]:
    """Rows without an origin in the tables, rows of another split than their group, rows that hold an answer of another
    split, and what was made from held-out rows for training.
    """
    split_of = released.table("splits").select("group_id", of_group="split")
    rows = released.rows.join(split_of, on="group_id", how="left")
    no_group = rows.filter(pl.col("of_group").is_null())
    yield from _refused(no_group["row_id"], "rows come from no post or dialogue that has a group and a split")
    moved = rows.filter(pl.col("split") != pl.col("of_group"))
    yield from _refused(moved["row_id"], "rows have another split than the group that they come from")
    answers = _drawn(released).join(_answers(released, split_of), on="answer_id", how="left")
    foreign = answers.filter(~pl.col("splits").list.contains(pl.col("split")).fill_null(value=False))
    yield from _refused(foreign["row_id"].unique(), "rows hold an answer to a question of another split, or to none")
    held_out = set(released.sources.join(split_of, on="group_id").filter(pl.col("of_group") != "train")["origin"])
    for table, column in MADE_OF_TRAINING_ROWS.items():
        ids = [row_id for row_id in released.table(table)[column] if origin(row_id, held_out) is not None]
        yield from _refused(ids, f"rows of {table} were made from held-out rows")


def _drawn(released: Released) -> pl.DataFrame:
    """`row_id`, `split`, `answer_id` of every answer to a post that a row holds: reference, positive or negative."""
    reference = pl.concat_list(pl.col("extra_info").struct.field("reference_id"))
    named = {
        "grpo_ecot": reference,
        "grpo_coe": reference,
        "rm_triplets": pl.concat_list("positive_id", "negative_ids"),
    }
    drawn = [
        rows.select("row_id", "split", answer_id=named[config]).explode("answer_id")
        for config, rows in released.configs.items()
        if config in named
    ]
    empty = pl.DataFrame(schema=dict.fromkeys(("row_id", "split", "answer_id"), pl.String))
    return pl.concat([empty, *drawn]).drop_nulls("answer_id")


def _answers(released: Released, split_of: pl.DataFrame) -> pl.DataFrame:
    """`answer_id` and the `splits` that it stands in. An answer that was moved is named after the post that it left."""
    ids = pl.col("answers").list.eval(pl.element().struct.field("answer_id"))
    answers = released.table("unique_posts").select("group_id", answer_id=ids).explode("answer_id")
    placed = answers.join(split_of, on="group_id").group_by("answer_id")
    return placed.agg(splits=pl.col("of_group").unique())


def groups(released: Released) -> Iterator[Finding]:
    """Groups in two splits: by their rows, or by a group key that they share."""
    torn = _torn(released.rows.drop_nulls("group_id"), "group_id")
    keys = released.table("splits").select("split", key="members", group_id="group_id").explode("key")
    shared = keys.filter(pl.col("key").is_in(_torn(keys.drop_nulls("key"), "key").implode()))
    ids = pl.concat([torn, shared["group_id"]]).unique()
    if ids.len():
        yield finding("groups", f"{ids.len():,} groups stand in two splits", _REFRESH, ids)


def _torn(rows: pl.DataFrame, by: str) -> pl.Series:
    """The values of a column that are in more than one split."""
    counted = rows.group_by(by).agg(splits=pl.col("split").n_unique())
    return counted.filter(pl.col("splits") > 1).get_column(by)


def _refused(ids: Collection[str] | pl.Series, what: str) -> Iterator[Finding]:
    if len(ids):
        yield finding("descendants", f"{len(ids):,} {what}", _REFRESH, ids)
