"""Whether a post is a person's trouble: its score of emotional context, and the signs of `lexicons/relevance.toml`.

Signs are a reason to be dropped where several kinds are together and the post has little of a person in it. All else is
at most a doubt, which the LLM filter decides: a person in distress may mention a price, a job or a pill.
"""

from functools import cache

import polars as pl

from pipelines.text.emotional_context import emotional_context
from pipelines.text.lexicon import lexicon
from pipelines.text.words import Words, spelled
from schemas.labels import DOUBTS

RELEVANCE = pl.Struct(
    {"reason": pl.String, "detail": pl.String, "doubts": pl.List(pl.String), "emotional_context": pl.Float64}
)

_SIGNED = [label for label in DOUBTS if label != "not_psychological"]
# Below it, a post is likelier to tell of nobody's trouble than of somebody's, were both as frequent: a doubt.
_DOUBTFUL = 0.5
# Above it, a writer tells of themselves, whatever the signs. Real stories with signs of a reason score 0.99.
_PERSONAL = 0.9


def relevance(text: pl.Expr, title: pl.Expr) -> pl.Expr:
    """Reason to drop a post, doubts about it, and its emotional context.

    Args:
        text: The whole post, title and all, in Simplified Chinese and without personal data; null counts as empty.
        title: Its title, which may be a sign by itself ("【公告】…").

    Returns a struct of `reason` (one of `schemas.labels.DOUBTS`, or null), `detail` (its signs), `doubts` (such labels)
    and `emotional_context` (0 … 1, see `pipelines.text.emotional_context`): what has little is `not_psychological`, as
    a doubt.
    """
    both = pl.struct(text=text.fill_null(""), title=title.fill_null(""))
    return both.map_batches(_relevance, return_dtype=RELEVANCE, is_elementwise=True)


def _relevance(posts: pl.Series) -> pl.Series:
    counts = _words().counted(posts.struct.field("text")).values()
    score = emotional_context(posts.struct.field("text")).alias("score")
    counted = posts.struct.unnest().with_columns(*counts, score).with_row_index("row")
    labels = pl.concat([*(_signed(counted, label) for label in _SIGNED), _little(counted)])
    labels = labels.sort("row", maintain_order=True)
    clear = labels.filter("clear").unique("row", keep="first", maintain_order=True)
    doubtful = labels.join(clear, on="row", how="anti").group_by("row", maintain_order=True).agg(doubts="label")
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
    """What is near the signs of each label."""
    words = lexicon("relevance", __file__)
    return Words({f"near {label}": spelled(words[label]["near"]) for label in _SIGNED})


def _signed(posts: pl.DataFrame, label: str) -> pl.DataFrame:
    """The posts with signs of `label`: `row`, `label`, whether the case is `clear`, and the signs as `detail`.

    Enough kinds of signs are together, the one that they need among them. A clear case (with the one that makes it
    `certain`, where there is such a one) tells of nobody.
    """
    rules = lexicon("relevance", __file__)[label]
    signs = {
        name: pl.col("title" if name == "title" else "text").str.contains(pattern)
        for name, pattern in rules["signs"].items()
    }
    n_signs = pl.sum_horizontal(pl.col(name).cast(pl.UInt32) for name in signs)
    many = pl.col(rules.get("certain", rules["needs"])) & (n_signs >= rules["clear"])
    return (
        posts.filter(pl.col(f"near {label}") > 0)
        .select("row", "score", **signs)
        .filter(pl.col(rules["needs"]) & (n_signs >= rules.get("doubtful", rules["clear"])))
        .select("row", label=pl.lit(label), clear=many & (pl.col("score") < _PERSONAL), detail=_named(list(signs)))
    )


def _little(posts: pl.DataFrame) -> pl.DataFrame:
    """The posts with little emotional context, in the form of `_signed`."""
    none = pl.lit(None, pl.String)
    label = pl.lit("not_psychological")
    return posts.filter(pl.col("score") < _DOUBTFUL).select("row", label=label, clear=pl.lit(False), detail=none)


def _named(names: list[str]) -> pl.Expr:
    """The names of the columns that hold, with a comma between them."""
    held = [pl.when(pl.col(name)).then(pl.lit(name)) for name in names]
    return pl.concat_str(held, separator=", ", ignore_nulls=True)
