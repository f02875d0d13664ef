"""Whether a post is a person's trouble, by the words and signs of `lexicons/relevance.toml`.

Advertisements, calls for contacts or applicants, notices and questions about something else are told by several signs
together. A clear case has a reason to be dropped; what only looks like one has a doubt, for the LLM filter to decide.
Whoever writes much of themselves is never dropped by signs: a person in distress may mention a price, a job or a pill.
"""

from functools import reduce
from operator import add
from typing import Any

import polars as pl

from pipelines.clean.lexicon import lexicon
from schemas.labels import DOUBTS

RELEVANCE = pl.Struct(
    {"reason": pl.String, "detail": pl.String, "doubts": pl.List(pl.String), "emotional_context": pl.Float64}
)

# Below this score nothing is dropped, but a text may have too little of a story to be one.
_HARDLY_A_STORY = 0.2


def relevance(text: pl.Expr, title: pl.Expr) -> pl.Expr:
    """Reason to drop a post, doubts about it, and its emotional context.

    Args:
        text: The whole post, title and all, in Simplified Chinese and without personal data; null counts as empty.
        title: Its title.

    Returns:
        A struct of `reason` (one of `schemas.labels.DOUBTS`, null where there is none), `detail` (the signs found, null
        without a reason), `doubts` (such labels, empty where there is a reason or no doubt) and `emotional_context`
        (0 … 1): 0.40 · (1 − 0.7^feelings) + 0.20 · min(1, self / 4) + 0.15 · min(1, people / 3) + 0.10 · asking
        + 0.15 · min(1, characters / 100), where `feelings`, `people` and `self` (I, me, myself) count words of the
        lexicon and `asking` is whether help is asked for; 0 for an empty text.
    """
    both = pl.struct(text=text.fill_null(""), title=title.fill_null(""))
    return both.map_batches(_relevance, return_dtype=RELEVANCE, is_elementwise=True)


def _relevance(posts: pl.Series) -> pl.Series:
    counted = _counted(posts.struct.unnest()).with_row_index("row")
    found = pl.concat([*(_signed(counted, label) for label in _SIGNED), _elsewhere(counted)]).sort(
        "row", maintain_order=True
    )
    clear = found.filter("clear").unique("row", keep="first", maintain_order=True)
    doubtful = found.join(clear, on="row", how="anti").group_by("row").agg(doubts="label")
    return (
        counted.join(clear.select("row", "detail", reason="label"), on="row", how="left", maintain_order="left")
        .join(doubtful, on="row", how="left", maintain_order="left")
        .select(
            pl.struct(
                "reason", "detail", doubts=pl.col("doubts").fill_null([]), emotional_context=pl.col("score")
            ).cast(RELEVANCE)
        )
        .to_series()
    )


def _counted(posts: pl.DataFrame) -> pl.DataFrame:
    """The posts with the words of their stories counted (`feelings`, `people`, `own`: of the writer), and the `score`."""
    story = lexicon("relevance")["story"]
    text = pl.col("text")
    counts = {name: text.str.count_matches("|".join(story[name])).cast(pl.Int32) for name in ("feelings", "people")}
    own = text.str.count_matches(story["self"]).cast(pl.Int32) - text.str.count_matches(story["we"]).cast(pl.Int32)
    asking = text.str.contains(story["asking"])
    parts = (
        0.40 * (1 - 0.7 ** pl.col("feelings").cast(pl.Float64)),
        0.20 * (pl.col("own") / 4).clip(0, 1),
        0.15 * (pl.col("people") / 3).clip(0, 1),
        0.10 * pl.col("asking").cast(pl.Float64),
        0.15 * (text.str.len_chars() / 100).clip(0, 1),
    )
    return posts.with_columns(**counts, own=own, asking=asking).with_columns(score=reduce(add, parts))


def _signed(posts: pl.DataFrame, label: str) -> pl.DataFrame:
    """The posts with signs of `label`: `row`, `label`, whether the case is `clear`, and the signs as `detail`.

    It is where enough kinds of signs stand together, the one that it needs among them, and the writer says little of
    themselves.
    """
    rules = lexicon("relevance")[label]
    signs = {name: pl.col("text").str.contains(pattern) for name, pattern in rules["signs"].items()}
    n_signs = pl.sum_horizontal(pl.col(name).cast(pl.UInt32) for name in signs)
    impersonal = (pl.col("own") <= rules["self"]) & (pl.col("feelings") <= rules["feelings"])
    return (
        posts.filter(pl.col("text").str.contains(rules["near"]))
        .select("row", "own", "feelings", **signs)
        .filter(pl.col(rules["needs"]) & (n_signs >= rules["doubtful"]))
        .select("row", label=pl.lit(label), clear=(n_signs >= rules["clear"]) & impersonal, detail=_named(list(signs)))
    )


_SIGNED = [label for label in DOUBTS if label != "not_psychological"]


def _elsewhere(posts: pl.DataFrame) -> pl.DataFrame:
    """The questions about something else, in the form of `_signed`.

    Clear where a topic has three words and no feeling and no couple is spoken of. Doubtful where topics outweigh the
    feelings, or where there is hardly a story at all.
    """
    topics: dict[str, Any] = lexicon("relevance")["not_psychological"]["topics"]
    couples = pl.col("text").str.contains(lexicon("relevance")["story"]["people"][1])
    cool = posts.filter((pl.col("feelings") <= 2) & (pl.col("own") <= 6))
    counts = {name: pl.col("text").str.count_matches(pattern) for name, pattern in topics.items()}
    most = pl.max_horizontal(list(topics))
    no_story = (pl.col("score") < _HARDLY_A_STORY) & (pl.col("feelings") + pl.col("people") == 0)
    return (
        cool.with_columns(**counts, couples=couples)
        .select(
            "row",
            "score",
            "feelings",
            "people",
            label=pl.lit("not_psychological"),
            clear=(most >= 3) & (pl.col("feelings") == 0) & ~pl.col("couples"),
            doubtful=most >= 2 + pl.col("feelings"),
            detail=_named(list(topics), at_least=2),
        )
        .filter(pl.col("clear") | pl.col("doubtful") | no_story)
        .select("row", "label", "clear", "detail")
    )


def _named(signs: list[str], at_least: int = 1) -> pl.Expr:
    """The names of the columns that count or hold, with a comma between them."""
    names = [pl.when(pl.col(sign).cast(pl.UInt32) >= at_least).then(pl.lit(sign)) for sign in signs]
    return pl.concat_str(names, separator=", ", ignore_nulls=True)
