"""Posts and dialogues without near-duplicates, in groups, each group with its split.

Posts and dialogues are grouped together: a dialogue made from a post opens with its words. Rows in conflict between
two splits are dropped first, with all that they hold; then what is left of a cluster in one split is merged.
"""

from collections.abc import Mapping

import polars as pl

from pipelines.core.stage import stage
from pipelines.dedup.group_keys import dialogue_keys, dialogue_texts, post_keys, post_texts, soft_keys
from pipelines.dedup.merge import dialogue_clusters, merge_dialogues, merge_posts, post_clusters
from pipelines.dedup.search import Search, name_clusters, searching
from pipelines.errors import RequestError
from pipelines.settings import Settings, Splits, engine
from pipelines.split.splits import Grouped, give_splits, known_splits
from schemas.dropped import drops, gather
from schemas.table import Dropped


def unique(
    posts: pl.DataFrame,
    dialogues: pl.DataFrame,
    known: pl.DataFrame,
    sizes: Splits | None = None,
    *,
    seed: int = 0,
    given_at: str = "",
    search: Search = name_clusters,
) -> dict[str, tuple[pl.DataFrame, pl.DataFrame]]:
    """`(kept, dropped)` of `unique_posts`, `unique_dialogues` and `splits`.

    Args:
        posts: Rows of `clean_posts`; `dialogues`: of `clean_dialogues`.
        known: The table `splits` so far; empty the first time.
        sizes: How much of the new groups goes to validation and test; which these are follows from `seed`.
        given_at: What to write beside new groups: the versions in which they were first seen.
        search: What finds near-duplicates; nothing depends on it but speed.

    Drops: `duplicate`, `near_duplicate` (post, dialogue, answer), `bridges_split` (post, dialogue), `post_dropped`.
    """
    posts = posts.with_columns(cluster=post_clusters(posts, search))
    dialogues = dialogues.with_columns(cluster=dialogue_clusters(dialogues, search))
    # Grouped before any is merged: what a duplicate's author wrote elsewhere belongs to the group as well.
    texts = post_texts(posts), dialogue_texts(dialogues)
    exact = post_keys(posts, texts[0]), dialogue_keys(dialogues, texts[1])
    soft = soft_keys(pl.concat(texts), known_splits(pl.concat(exact), known), search)
    clusters = pl.concat(
        [posts.select("post_id", "cluster"), dialogues.select(post_id="dialogue_id", cluster="cluster")]
    )
    grouped = give_splits(
        *exact,
        known,
        sizes,
        soft=dict(soft.iter_rows()),
        clusters=dict(clusters.iter_rows()),
        seed=seed,
        given_at=given_at,
    )
    posts, post_conflicts = _grouped(posts, "post_id", grouped)
    dialogues, dialogue_conflicts = _grouped(dialogues, "dialogue_id", grouped)
    posts, merged_posts = merge_posts(posts.drop("cluster"), posts["cluster"], search)
    dialogues, merged_dialogues = merge_dialogues(dialogues.drop("cluster"), dialogues["cluster"])
    orphans = post_conflicts.select("post_id", "answers").explode("answers", empty_as_null=False).unnest("answers")
    reason, detail = pl.lit("bridges_split"), pl.format("ties {}", "conflict")
    return {
        "splits": (grouped.splits, Dropped.create_empty()),
        "unique_posts": (
            posts,
            gather(
                merged_posts,
                drops(post_conflicts, "unique_posts", "post", "post_id", reason, detail),
                drops(orphans, "unique_posts", "answer", "answer_id", pl.lit("post_dropped"), pl.col("post_id")),
            ),
        ),
        "unique_dialogues": (
            dialogues,
            gather(
                merged_dialogues,
                drops(dialogue_conflicts, "unique_dialogues", "dialogue", "dialogue_id", reason, detail),
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
                hint="ask for fewer, or for shares below 1; nothing was written",
            )


def _grouped(frame: pl.DataFrame, row_id: str, grouped: Grouped) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with their `group_id`, and those in conflict, which would join groups of different splits.

    A cluster whose middle was dropped may have rows in two splits: these are not one row.
    """
    split_of = dict(grouped.splits.select("group_id", "split").iter_rows())
    ids = pl.col(row_id)
    marked = frame.with_columns(
        group_id=ids.replace_strict(grouped.groups, default=None, return_dtype=pl.String),
        conflict=ids.replace_strict(grouped.conflicts, default=None, return_dtype=pl.String),
    ).with_columns(
        cluster=pl.concat_str("cluster", pl.col("group_id").replace(split_of), separator=" ", ignore_nulls=True)
    )
    in_conflict = pl.col("conflict").is_not_null()
    return marked.filter(~in_conflict).drop("conflict"), marked.filter(in_conflict)


# `splits` is written first: killed after it, the next run has the groups already and gives the same rows.
@stage(
    "unique",
    group="unique",
    tables=("splits", "unique_posts", "unique_dialogues"),
    reads=("splits", "seed"),
    units={
        "unique_posts": {"post": ("clean_posts",), "answer": ("clean_posts",)},
        "unique_dialogues": {"dialogue": ("clean_dialogues",)},
    },
)
def make_unique(
    clean_posts: pl.DataFrame,
    clean_dialogues: pl.DataFrame,
    splits: pl.DataFrame,
    settings: Settings,
    versions: Mapping[str, str],
) -> dict[str, tuple[pl.DataFrame, pl.DataFrame]]:
    """`unique_posts` and `unique_dialogues`, with the splits of their groups: those of known groups stay."""
    with searching(engine()) as search:
        made = unique(
            clean_posts,
            clean_dialogues,
            splits,
            settings.splits,
            seed=settings.seed,
            given_at=" ".join(f"{table}@{version}" for table, version in sorted(versions.items())),
            search=search,
        )
    require_training_rows(made, settings.splits)
    return made
