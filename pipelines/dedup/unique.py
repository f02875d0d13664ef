"""Posts and dialogues without near-duplicates, in groups, each group with its split.

Posts and dialogues are grouped together: a dialogue made from a post opens with its words. Rows that would tie two
splits fall first, with all that they hold; then what is left of a cluster on one side of the splits is merged.
"""

from collections.abc import Mapping

import polars as pl

from pipelines.core.stage import stage
from pipelines.dedup.links import dialogue_links, dialogue_texts, post_links, post_texts
from pipelines.dedup.merge import dialogue_clusters, merge_dialogues, merge_posts, post_clusters
from pipelines.dedup.search import Search, search_by, searching
from pipelines.dedup.ties import ties
from pipelines.errors import RequestError
from pipelines.settings import Settings, Splits, engine
from pipelines.split.splits import Grouped, give_splits, standing_rows
from schemas.dropped import drops, gather
from schemas.table import Dropped


def unique(
    posts: pl.DataFrame,
    dialogues: pl.DataFrame,
    standing: pl.DataFrame,
    sizes: Splits | None = None,
    *,
    seed: int = 0,
    given_at: str = "",
    search: Search | None = None,
) -> dict[str, tuple[pl.DataFrame, pl.DataFrame]]:
    """`(kept, dropped)` of `unique_posts`, `unique_dialogues` and `splits`.

    Args:
        posts: Rows of `clean_posts`.
        dialogues: Rows of `clean_dialogues`.
        standing: The table `splits` as it stands; empty the first time.
        sizes: How much of the new groups goes to validation and test.
        seed: Which groups these are follows from it.
        given_at: What to write beside new groups: the versions in which they were first seen.
        search: What finds near-duplicates; nothing depends on it but speed.

    Drops: `duplicate`, `near_duplicate` (post, dialogue, answer), `bridges_split` (post, dialogue) and `post_dropped`
    (answer).
    """
    search = search or search_by()
    clusters = post_clusters(posts, search), dialogue_clusters(dialogues, search)
    grouped = _groups(posts, dialogues, clusters, standing, sizes, search, seed, given_at)
    split_of = dict(grouped.splits.select("group_id", "split").iter_rows())
    posts, bridging_posts = _grouped(posts.with_columns(cluster=clusters[0]), "post_id", grouped, split_of)
    dialogues, bridging_dialogues = _grouped(
        dialogues.with_columns(cluster=clusters[1]), "dialogue_id", grouped, split_of
    )
    posts, repeated_posts = merge_posts(posts.drop("cluster"), "unique_posts", posts["cluster"], search)
    dialogues, repeated_dialogues = merge_dialogues(
        dialogues.drop("cluster"), "unique_dialogues", dialogues["cluster"], search
    )
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
                hint="ask for fewer, or for shares below 1; nothing was written",
            )


def _groups(
    posts: pl.DataFrame,
    dialogues: pl.DataFrame,
    clusters: tuple[pl.Series, pl.Series],
    standing: pl.DataFrame,
    sizes: Splits | None,
    search: Search,
    seed: int,
    given_at: str,
) -> Grouped:
    """The rows as they hang together, before any is merged: what a duplicate's author wrote elsewhere ties as well."""
    of_posts, of_dialogues = post_texts(posts), dialogue_texts(dialogues)
    links = post_links(posts, of_posts), dialogue_links(dialogues, of_dialogues)
    tied = ties(pl.concat([of_posts, of_dialogues]), standing_rows(pl.concat(links), standing), search)
    ids = posts["post_id"].to_list() + dialogues["dialogue_id"].to_list()
    return give_splits(
        *links,
        standing,
        sizes,
        ties=dict(tied.iter_rows()),
        clusters=dict(zip(ids, clusters[0].to_list() + clusters[1].to_list(), strict=True)),
        seed=seed,
        given_at=given_at,
    )


def _grouped(
    frame: pl.DataFrame, row_id: str, grouped: Grouped, split_of: dict[str, str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with their `group_id`, and the rows that would tie groups of different splits together.

    A cluster whose middle fell may have rows on two sides of a split: these are not one row.
    """
    ids = frame.get_column(row_id)
    marked = frame.with_columns(
        group_id=pl.Series([grouped.groups.get(row) for row in ids], dtype=pl.String),
        bridge=pl.Series([grouped.bridges.get(row) for row in ids], dtype=pl.String),
    ).with_columns(
        cluster=pl.concat_str("cluster", pl.col("group_id").replace(split_of), separator=" ", ignore_nulls=True)
    )
    return marked.filter(pl.col("bridge").is_null()).drop("bridge"), marked.filter(pl.col("bridge").is_not_null())


# `splits` is written first: killed after it, the next run finds the groups standing and gives the same rows.
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
    """`unique_posts` and `unique_dialogues`, with the splits of their groups: those given before stay."""
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
