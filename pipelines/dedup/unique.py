"""Posts and dialogues without near-duplicates, in groups, each group with its split.

Posts and dialogues are grouped together: a dialogue made from a post opens with its words. Rows in conflict between
two splits are dropped first, with all that they hold; then what is left of a cluster in one split is merged.
"""

import difflib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from pipelines.core.arrow import buffers
from pipelines.core.spill import spilled_by_slices
from pipelines.core.stage import stage
from pipelines.dedup.formulas import cut_formulas
from pipelines.dedup.group_keys import (
    dialogue_keys,
    dialogue_texts,
    post_keys,
    post_texts,
    soft_keys,
    without_formulas,
)
from pipelines.dedup.jaccard import similarities
from pipelines.dedup.search import Search, name_clusters, searching
from pipelines.errors import RequestError
from pipelines.settings import Filters, Settings, Splits, engine
from pipelines.split.splits import Grouped, give_splits, known_splits
from pipelines.text import keys
from schemas.dropped import drops, gather
from schemas.posts import EDIT, PII, UniquePosts
from schemas.table import Dropped

# What is looked at of the posts that are one; the rest is that of the survivor.
_OF_A_CLUSTER = ["post_id", "posted_at", "key", "cluster", "answers", "risk", "pii", "edits", "under_18"]

_NEARLY = 0.75  # of two names of sources, by difflib: one is the other misspelt


def unique(
    posts: pl.DataFrame,
    dialogues: pl.DataFrame,
    known: pl.DataFrame,
    sizes: Splits | None = None,
    *,
    min_answer_chars: int = Filters().min_answer_chars,
    seed: int = 0,
    given_at: str = "",
    search: Search = name_clusters,
    scratch: Path | None = None,
) -> dict[str, tuple[pl.DataFrame, pl.DataFrame]]:
    """`(kept, dropped)` of `unique_posts`, `unique_dialogues` and `splits`.

    Args:
        posts: Rows of `clean_posts`; `dialogues`: of `clean_dialogues`.
        known: The table `splits` so far; empty the first time.
        sizes: How much of the new groups goes to validation and test; which these are follows from `seed`.
        min_answer_chars: An answer that has lost its signature needs more.
        given_at: What to write beside new groups: the versions in which they were first seen.
        search: What finds near-duplicates; nothing depends on it but speed.
        scratch: A folder for what is read of all rows (`pipelines.core.spill`): nothing depends on it but memory.

    Drops: `duplicate`, `near_duplicate` (post, dialogue, answer), `bridges_split` (post, dialogue), `post_dropped`,
    `too_short` (answer).
    """
    posts, short = cut_formulas(posts, min_answer_chars, scratch)
    posts, dialogues = _keyed(posts, _TEXT, scratch), _keyed(dialogues, _WHOLE, scratch)
    posts = posts.with_columns(cluster=post_clusters(posts, search))
    dialogues = dialogues.with_columns(cluster=dialogue_clusters(dialogues, search))
    # Grouped before any is merged: what a duplicate's author wrote elsewhere belongs to the group as well.
    grouped = give_splits(
        **_group_keys(posts, dialogues, known, search, scratch),
        known=known,
        sizes=sizes,
        sources=_sources(posts),
        seed=seed,
        given_at=given_at,
    )
    rest = posts.select("post_id", pl.exclude(_OF_A_CLUSTER))
    posts, post_conflicts = _grouped(posts.select(_OF_A_CLUSTER), "post_id", grouped)
    dialogues, dialogue_conflicts = _grouped(dialogues, "dialogue_id", grouped)
    posts, merged_posts = merge_posts(posts.drop("cluster"), posts["cluster"], search, scratch)
    posts = posts.join(rest, on="post_id", how="left", maintain_order="left")
    dialogues, merged_dialogues = merge_dialogues(dialogues.drop("cluster"), dialogues["cluster"])
    orphans = post_conflicts.select("post_id", "answers").explode("answers", empty_as_null=False).unnest("answers")
    reason, detail = pl.lit("bridges_split"), pl.format("ties {}", "conflict")
    return {
        "splits": (grouped.splits, Dropped.create_empty()),
        "unique_posts": (
            posts,
            gather(
                short,
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


def _group_keys(
    posts: pl.DataFrame, dialogues: pl.DataFrame, known: pl.DataFrame, search: Search, scratch: Path | None
) -> dict[str, pl.DataFrame]:
    """What `give_splits` takes of posts and dialogues with their `cluster`: exact and soft keys, clusters."""
    of_each = spilled_by_slices(post_texts, posts, scratch), spilled_by_slices(dialogue_texts, dialogues, scratch)
    texts = without_formulas(pl.concat(of_each))
    of_posts = pl.col("row_id").is_in(posts["post_id"].implode())
    exact = {
        "posts": post_keys(posts, texts.filter(of_posts)),
        "dialogues": dialogue_keys(dialogues, texts.filter(~of_posts)),
    }
    soft = soft_keys(texts, known_splits(pl.concat(exact.values()), known), search, scratch)
    clusters = pl.concat([posts.select("cluster", row_id="post_id"), dialogues.select("cluster", row_id="dialogue_id")])
    return {**exact, "soft": soft, "clusters": clusters}


def require_training_rows(made: dict[str, tuple[pl.DataFrame, pl.DataFrame]], sizes: Splits) -> None:
    """Raises RequestError where numbers of rows leave none to train on: a split is given once and stays."""
    splits = made["splits"][0]
    training = splits.filter(pl.col("split") == "train")["group_id"].implode()
    for kind, wanted in (("posts", sizes.posts), ("dialogues", sizes.dialogues)):
        rows = made[f"unique_{kind}"][0]
        numbers = (wanted, *getattr(wanted, "sources", {}).values())
        by_number = not all(isinstance(size, float) for one in numbers for size in (one.test, one.validation))
        if by_number and rows.height and not rows["group_id"].is_in(training).any():
            raise RequestError(
                f"the split sizes leave none of {rows.height} {kind} to train on",
                where=f"splits.{kind} (test = {wanted.test}, validation = {wanted.validation})",
                hint="ask for fewer, or for shares below 1; nothing was written",
            )


def require_sources(posts: pl.DataFrame, sizes: Splits) -> None:
    """Raises RequestError where the settings name a source that no post is of, and nearly name one that posts are of:
    its posts would get the common sizes for ever. A source whose posts come later is no error.
    """
    named, there = sizes.posts.sources, set(posts["source"])
    for name in sorted(named.keys() - there):
        if near := difflib.get_close_matches(name, sorted(there - named.keys()), n=1, cutoff=_NEARLY):
            raise RequestError(
                f"no post is of the source {name!r}",
                where=f"splits.posts.sources.{name}",
                hint=f"did you mean {near[0]!r}? Else leave it out until its posts are there; nothing was written",
            )


def _grouped(frame: pl.DataFrame, row_id: str, grouped: Grouped) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with their `group_id`, and those in conflict, which would join groups of different splits. A cluster
    whose middle was dropped may have rows in two splits: these are not one row.
    """
    rows = grouped.rows.join(grouped.splits.select("group_id", "split"), on="group_id", how="left")
    marked = frame.join(rows, left_on=row_id, right_on="row_id", how="left", maintain_order="left").with_columns(
        cluster=pl.concat_str("cluster", "split", separator=" ", ignore_nulls=True)
    )
    in_conflict = pl.col("conflict").is_not_null()
    return marked.filter(~in_conflict).drop("conflict", "split"), marked.filter(in_conflict)


# `splits` is written first: killed after it, the next run has the groups already and gives the same rows.
@stage(
    "unique",
    group="unique",
    tables=("splits", "unique_posts", "unique_dialogues"),
    reads=("splits", "seed", "filters.min_answer_chars"),
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
    scratch: Path | None,
) -> dict[str, tuple[pl.DataFrame, pl.DataFrame]]:
    """`unique_posts` and `unique_dialogues`, with the splits of their groups: those of known groups stay."""
    require_sources(clean_posts, settings.splits)
    with searching(engine(), scratch) as search:
        made = unique(
            clean_posts,
            clean_dialogues,
            splits,
            settings.splits,
            min_answer_chars=settings.filters.min_answer_chars,
            seed=settings.seed,
            given_at=" ".join(f"{table}@{version}" for table, version in sorted(versions.items())),
            search=search,
            scratch=scratch,
        )
    require_training_rows(made, settings.splits)
    return made


_OF_AN_ANSWER = [field.name for field in UniquePosts.columns()["answers"].dtype.inner.fields]  # type: ignore[attr-defined]


_TURN = pl.element().struct
# What rows are compared by: the text of a post; a dialogue whole, with who says what.
_TEXT = keys.key(pl.col("text"))
_WHOLE = pl.col("turns").list.eval(_TURN.field("role") + ":" + keys.key(_TURN.field("text"))).list.join("\n")


def _keyed(rows: pl.DataFrame, key: pl.Expr, scratch: Path | None = None) -> pl.DataFrame:
    """The rows with their `key`, where they do not have it yet."""
    if "key" in rows.columns:
        return rows
    return rows.with_columns(spilled_by_slices(lambda some: some.select(key=key), rows, scratch)["key"])


def post_clusters(posts: pl.DataFrame, search: Search = name_clusters) -> pl.Series:
    """The number of each post's cluster; posts of one cluster are one post."""
    return search(_keyed(posts, _TEXT)["key"])


def dialogue_clusters(dialogues: pl.DataFrame, search: Search = name_clusters) -> pl.Series:
    """The number of each dialogue's cluster; dialogues of one cluster are one dialogue."""
    return search(_keyed(dialogues, _WHOLE)["key"])


def merge_posts(
    posts: pl.DataFrame, clusters: pl.Series, search: Search = name_clusters, scratch: Path | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Posts with `cluster_id` and `cluster_size`, one a cluster, each answer with the `cluster_id` of answers like it.

    Args:
        posts: Rows of `clean_posts`; `clusters`: the number of each post's cluster.
        search: What finds near-duplicates among the answers.
        scratch: As of `unique`.

    Returns `(kept, dropped)`: the drops are `duplicate` or `near_duplicate`, in the units `post` and `answer`.
    """
    members = _clustered(_keyed(posts, _TEXT), clusters, "post_id")
    answers = _answers(members, search, scratch)
    moved = answers.filter(pl.col("answer_id") == pl.col("survivor"))
    kept = members.filter(pl.col("post_id") == pl.col("survivor"))
    united = moved.group_by(survivor="question", maintain_order=True).agg(answers=pl.struct(_OF_AN_ANSWER))
    for column in (united, _risks(members), _pii(members, moved), _edits(members, moved)):
        kept = _replaced(kept, column)
    return kept.select(*posts.drop("key", strict=False).columns, "cluster_size", cluster_id="survivor"), gather(
        _merged(members, "unique_posts", "post", "post_id"), _merged(answers, "unique_posts", "answer", "answer_id")
    )


def merge_dialogues(dialogues: pl.DataFrame, clusters: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Dialogues with `cluster_id` and `cluster_size`, one a cluster; drops as of `merge_posts`."""
    members = _clustered(_keyed(dialogues, _WHOLE).with_columns(posted_at=None), clusters, "dialogue_id")
    kept = _replaced(members.filter(pl.col("dialogue_id") == pl.col("survivor")), _risks(members))
    return kept.select(*dialogues.drop("key", strict=False).columns, "cluster_size", cluster_id="survivor"), _merged(
        members, "unique_dialogues", "dialogue", "dialogue_id"
    )


def _replaced(kept: pl.DataFrame, column: pl.DataFrame) -> pl.DataFrame:
    """The survivors with another column of lists: of `survivor` and that column, empty for who is not there."""
    (name,) = set(column.columns) - {"survivor"}
    empty = pl.lit(pl.Series([[]], dtype=column.schema[name]))
    kept = kept.drop(name).join(column, on="survivor", how="left", maintain_order="left")
    return kept.with_columns(pl.col(name).fill_null(empty))


def _clustered(frame: pl.DataFrame, clusters: pl.Series, row_id: str) -> pl.DataFrame:
    """The rows, best first, each with the `survivor` of its cluster and its `cluster_size`."""
    return (
        _best_first(frame.with_columns(cluster=clusters), row_id)
        .with_columns(
            survivor=pl.col(row_id).first().over("cluster"), cluster_size=pl.len().over("cluster").cast(pl.Int64)
        )
        .with_columns(pl.col("under_18").any().over("cluster"))
    )


def _best_first(frame: pl.DataFrame, row_id: str) -> pl.DataFrame:
    """Of rows that are one, the first stays: the earliest, the longest, the first by its id."""
    return frame.sort("posted_at", -pl.col("key").str.len_chars().cast(pl.Int64), row_id, nulls_last=True)


def _sources(posts: pl.DataFrame) -> pl.DataFrame:
    """`row_id` and `source` of each post: that of the post that stays of its cluster."""
    best = _best_first(posts, "post_id")
    return best.select(pl.col("source").first().over("cluster"), row_id="post_id")


def _answers(members: pl.DataFrame, search: Search, scratch: Path | None) -> pl.DataFrame:
    """All answers, in the order of their posts and lists, each with its `question` and the `survivor` of those like it
    under the same question; `cluster_id` and `n_questions` hold for the corpus.
    """
    answers = (
        members.select("post_id", question="survivor", of="answers")
        .explode("of", empty_as_null=False)
        .select("post_id", "question", pl.col("of").struct.unnest())
        .with_row_index("place")
    )
    answers = _keyed(answers, keys.key(pl.col("text")), scratch)
    like = pl.col("like")
    best = _best_first(answers.with_columns(like=search(answers["key"])), "answer_id")
    return best.with_columns(
        survivor=pl.col("answer_id").first().over("question", like),
        cluster_id=pl.col("answer_id").first().over(like),
        n_questions=pl.col("question").n_unique().over(like).cast(pl.Int64),
    ).sort("place")


def _risks(members: pl.DataFrame) -> pl.DataFrame:
    """`risk` of survivors: the signs in any member, those of the survivor first."""
    signs = members.select("survivor", "risk").explode("risk", empty_as_null=False)
    return signs.group_by("survivor", maintain_order=True).agg(pl.col("risk").unique(maintain_order=True))


def _pii(members: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """`pii` of each survivor: what was replaced in it, and in the members of whose answers it has any."""
    gives = pl.col("post_id").is_in(answers["post_id"].unique().implode()) | (pl.col("post_id") == pl.col("survivor"))
    return (
        members.filter(gives)
        .select("survivor", "pii")
        .explode("pii", empty_as_null=False)
        .select("survivor", pl.col("pii").struct.unnest())
        .group_by("survivor", "kind")
        .agg(pl.col("count").sum())
        .sort("kind")
        .group_by("survivor")
        .agg(pii=pl.struct("kind", "count").cast(PII.dtype))
    )


def _edits(members: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """`edits` of each survivor: those of the answers that it has now."""
    edits = members.select("survivor", "edits").explode("edits", empty_as_null=False)
    there = edits["edits"].struct.field("row_id").is_in(answers["answer_id"].implode())
    return edits.filter(there).group_by("survivor", maintain_order=True).agg(pl.col("edits").cast(EDIT.dtype))


def _merged(rows: pl.DataFrame, stage: str, unit: str, row_id: str) -> pl.DataFrame:
    """The drops of the rows that did not survive; each says like what, and how much."""
    first = rows.select(survivor=row_id, first_key="key")
    gone = rows.filter(pl.col(row_id) != pl.col("survivor")).join(
        first, on="survivor", how="left", maintain_order="left"
    )
    gone = gone.with_columns(similarity=_similarity(gone["first_key"], gone["key"]))
    equal = pl.col("key") == pl.col("first_key")
    hundredths = (pl.col("similarity") * 100).floor().cast(pl.Int64).cast(pl.String).str.zfill(3)
    nearly = pl.format("{}.{} like {}", hundredths.str.head(1), hundredths.str.tail(2), pl.col("survivor"))
    return drops(
        gone,
        stage,
        unit,
        row_id,
        pl.when(equal).then(pl.lit("duplicate")).otherwise(pl.lit("near_duplicate")),
        pl.when(equal).then(pl.format("same text as {}", pl.col("survivor"))).otherwise(nearly),
    )


def _similarity(one: pl.Series, other: pl.Series) -> pl.Series:
    """The Jaccard similarity of the char-5-grams of two columns of texts, row by row."""
    data, offsets = buffers(pl.concat([one, other]))
    rows = np.arange(len(one), dtype=np.uint32)
    return pl.Series(similarities(data, offsets, rows, rows + np.uint32(len(one))), dtype=pl.Float64)
