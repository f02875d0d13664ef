"""Posts and dialogues without duplicates, in groups, each group with its split.

Posts and dialogues are grouped together: a dialogue made from a post opens with its words.
"""

import polars as pl

from pipelines.dedup.exact import merge_dialogues, merge_posts
from pipelines.drops import drops, gather
from pipelines.errors import RequestError
from pipelines.sample.links import dialogue_links, post_links
from pipelines.sample.splits import give_splits
from pipelines.settings import Splits
from schemas.table import Dropped


def unique(
    posts: pl.DataFrame,
    dialogues: pl.DataFrame,
    standing: pl.DataFrame,
    sizes: Splits | None = None,
    *,
    seed: int = 0,
    given_at: str = "",
) -> dict[str, tuple[pl.DataFrame, pl.DataFrame]]:
    """`(kept, dropped)` of `unique_posts`, `unique_dialogues` and `splits`.

    Args:
        posts: Rows of `clean_posts`.
        dialogues: Rows of `clean_dialogues`.
        standing: The table `splits` as it stands; empty the first time.
        sizes: How much of the new groups goes to validation and test.
        seed: Which groups these are follows from it.
        given_at: What to write beside new groups: the versions in which they were first seen.

    Drops: `duplicate` (post, dialogue, answer), `bridges_split` (post, dialogue) and `post_dropped` (answer).
    """
    links = post_links(posts)  # before they are merged: the author of a duplicate ties as well
    posts, repeated_posts = merge_posts(posts, "unique_posts")
    dialogues, repeated_dialogues = merge_dialogues(dialogues, "unique_dialogues")
    merged = set(links["row_id"]) - set(posts["post_id"])
    grouped = give_splits(
        links, dialogue_links(dialogues), standing, sizes, merged=merged, seed=seed, given_at=given_at
    )
    posts, bridging_posts = _grouped(posts, "post_id", grouped.groups, grouped.bridges)
    dialogues, bridging_dialogues = _grouped(dialogues, "dialogue_id", grouped.groups, grouped.bridges)
    orphans = bridging_posts.select("post_id", "answers").explode("answers", empty_as_null=False).unnest("answers")
    tied = pl.format("ties {}", pl.col("bridge"))
    return {
        "splits": (grouped.splits, Dropped.create_empty()),
        "unique_posts": (
            posts,
            gather(
                repeated_posts,
                drops(bridging_posts, "unique_posts", "post", "post_id", pl.lit("bridges_split"), tied),
                drops(orphans, "unique_posts", "answer", "answer_id", pl.lit("post_dropped"), pl.col("post_id")),
            ),
        ),
        "unique_dialogues": (
            dialogues,
            gather(
                repeated_dialogues,
                drops(bridging_dialogues, "unique_dialogues", "dialogue", "dialogue_id", pl.lit("bridges_split"), tied),
            ),
        ),
    }


def require_training_rows(made: dict[str, tuple[pl.DataFrame, pl.DataFrame]], sizes: Splits) -> None:
    """Raises RequestError where numbers of rows leave none to train on: a split is given once and stays."""
    splits = made["splits"][0]
    training = splits.filter(pl.col("split") == "train")["group_id"].implode()
    for kind, wanted in (("posts", sizes.posts), ("dialogues", sizes.dialogues)):
        rows = made[f"unique_{kind}"][0]
        by_number = not (isinstance(wanted.test, float) and isinstance(wanted.validation, float))
        if by_number and rows.height and not rows["group_id"].is_in(training).any():
            raise RequestError(
                f"the split sizes leave none of {rows.height} {kind} to train on",
                where=f"splits.{kind} (test = {wanted.test}, validation = {wanted.validation})",
                remedy="ask for fewer, or for shares below 1; nothing was written",
            )


def _grouped(
    frame: pl.DataFrame, row_id: str, groups: dict[str, str], bridges: dict[str, str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with their `group_id`, and the rows that would tie groups of different splits together."""
    ids = frame.get_column(row_id)
    marked = frame.with_columns(
        group_id=pl.Series([groups.get(row) for row in ids], dtype=pl.String),
        bridge=pl.Series([bridges.get(row) for row in ids], dtype=pl.String),
    )
    return marked.filter(pl.col("bridge").is_null()).drop("bridge"), marked.filter(pl.col("bridge").is_not_null())
