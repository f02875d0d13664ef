"""Whether a post is a person's trouble, by the words and signs of `lexicons/relevance.toml`.

A clear case has a reason to be dropped, an unclear one a doubt, which the LLM filter decides. Who writes much of
themselves is never dropped by signs: a person in distress may mention a price, a job or a pill.
"""

from functools import cache

import polars as pl

from pipelines.text.lexicon import lexicon
from pipelines.text.words import Words, spelled
from schemas.labels import DOUBTS

RELEVANCE = pl.Struct(
    {"reason": pl.String, "detail": pl.String, "doubts": pl.List(pl.String), "emotional_context": pl.Float64}
)

_SIGNED = [label for label in DOUBTS if label != "not_psychological"]
# Below this score, and without a word of a feeling or a person, a text has too little of a story to be sure of.
_HARDLY_A_STORY = 0.2


def relevance(text: pl.Expr, title: pl.Expr) -> pl.Expr:
    """Reason to drop a post, doubts about it, and its emotional context.

    Args:
        text: The whole post, title and all, in Simplified Chinese and without personal data; null counts as empty.
        title: Its title, which may be a sign by itself ("【公告】…").

    Returns a struct of `reason` (one of `schemas.labels.DOUBTS`, or null), `detail` (its signs), `doubts` (such labels)
    and `emotional_context` (0 … 1): 0.40 · (1 − 0.7^feelings) + 0.20 · min(1, own / 4) + 0.15 · min(1, people / 3) +
    0.10 · asking + 0.15 · min(1, characters / 100), where `feelings`, `people` and `own` (I, me, myself) count words of
    the lexicon and `asking` is whether help is asked for; 0 for an empty text.
    """
    both = pl.struct(text=text.fill_null(""), title=title.fill_null(""))
    return both.map_batches(_relevance, return_dtype=RELEVANCE, is_elementwise=True)


def _relevance(posts: pl.Series) -> pl.Series:
    counts = _words().counted(posts.struct.field("text")).values()
    counted = posts.struct.unnest().with_columns(counts).with_columns(score=_score()).with_row_index("row")
    signed = (_signed(counted, label) for label in _SIGNED)
    labels = pl.concat([*signed, _elsewhere(counted)]).sort("row", maintain_order=True)
    clear = labels.filter("clear").unique("row", keep="first", maintain_order=True)
    doubtful = labels.join(clear, on="row", how="anti").group_by("row").agg(doubts="label")
    return (
        counted.select("row", "score")
        .join(clear.select("row", "detail", reason="label"), on="row", how="left", maintain_order="left")
        .join(doubtful, on="row", how="left", maintain_order="left")
        .select(
            pl.struct(
                "reason", "detail", doubts=pl.col("doubts").fill_null([]), emotional_context=pl.col("score")
            ).cast(RELEVANCE)
        )
        .to_series()
    )


@cache
def _words() -> Words:
    """What is counted in every text: the parts of a story, topics, and what is near the signs of each label."""
    words = lexicon("relevance", __file__)
    story, topics = words["story"], words["not_psychological"]["topics"]
    lists = {**story, **topics, **{f"near {label}": words[label]["near"] for label in _SIGNED}}
    return Words({name: spelled("|".join(one) if isinstance(one, list) else one) for name, one in lists.items()})


def _score() -> pl.Expr:
    return (
        0.40 * (1 - 0.7 ** pl.col("feelings").cast(pl.Float64))
        + 0.20 * (_own() / 4).clip(0, 1)
        + 0.15 * (pl.col("people") / 3).clip(0, 1)
        + 0.10 * (pl.col("asking") > 0).cast(pl.Float64)
        + 0.15 * (pl.col("text").str.len_chars() / 100).clip(0, 1)
    )


def _own() -> pl.Expr:
    """Words of the writer alone: 我们 is what shops and moderators say."""
    return pl.col("self") - pl.col("we")


def _signed(posts: pl.DataFrame, label: str) -> pl.DataFrame:
    """The posts with signs of `label`: `row`, `label`, whether the case is `clear`, and the signs as `detail`. A case
    where enough kinds of signs are together, the one that it needs among them (with the one that makes it `certain`,
    where there is such a one), and the writer says little of themselves.
    """
    rules = lexicon("relevance", __file__)[label]
    signs = {
        name: pl.col("title" if name == "title" else "text").str.contains(pattern)
        for name, pattern in rules["signs"].items()
    }
    n_signs = pl.sum_horizontal(pl.col(name).cast(pl.UInt32) for name in signs)
    clear = pl.col(rules.get("certain", rules["needs"])) & (n_signs >= rules["clear"])
    impersonal = (pl.col("own") <= rules["own"]) & (pl.col("feelings") <= rules["feelings"])
    return (
        posts.filter(pl.col(f"near {label}") > 0)
        .select("row", "feelings", own=_own(), **signs)
        .filter(pl.col(rules["needs"]) & (n_signs >= rules["doubtful"]))
        .select("row", label=pl.lit(label), clear=clear & impersonal, detail=_named(list(signs)))
    )


def _elsewhere(posts: pl.DataFrame) -> pl.DataFrame:
    """The questions about something else, in the form of `_signed`."""
    topics = list(lexicon("relevance", __file__)["not_psychological"]["topics"])
    feelings, most = pl.col("feelings"), pl.max_horizontal(topics)
    no_story = (pl.col("score") < _HARDLY_A_STORY) & (feelings + pl.col("people") == 0)
    doubtful = (most >= 2 + feelings) & (feelings <= 2) & (_own() <= 6)
    return posts.filter(doubtful | no_story).select(
        "row",
        label=pl.lit("not_psychological"),
        clear=(most >= 3) & (feelings == 0) & (pl.col("couples") == 0) & (_own() <= 6),
        detail=_named(topics, at_least=2),
    )


def _named(signs: list[str], at_least: int = 1) -> pl.Expr:
    """The names of the columns that count or hold, with a comma between them."""
    names = [pl.when(pl.col(sign).cast(pl.UInt32) >= at_least).then(pl.lit(sign)) for sign in signs]
    return pl.concat_str(names, separator=", ", ignore_nulls=True)
