"""Writers who say that they are minors, by the patterns of `lexicons/minors.toml`.

The data of children under 14 are sensitive by law (PIPL Art. 28): their posts are dropped. Those of minors stay out of
everything that trains. A school year tells as well: primary school counts as under 14, what follows as under 18, unless
the writer says to be 18 or older.
"""

from functools import cache
from typing import Any

import polars as pl

from pipelines.clean.lexicon import alternation, lexicon
from pipelines.clean.words import Words, spelled

LIMITS = {"under_14": 14, "under_18": 18}
_NEVER = r"[^\s\S]"


def under_14(text: pl.Expr, posted_at: pl.Expr | None = None) -> pl.Expr:
    """Whether the writer says to be younger than 14 (Boolean, never null).

    Args:
        text: What they wrote, in Simplified Chinese or in English; null says nothing.
        posted_at: When; without it a year of birth says nothing.
    """
    return minors(text, posted_at).struct.field("under_14")


def under_18(text: pl.Expr, posted_at: pl.Expr | None = None) -> pl.Expr:
    """Whether the writer says to be younger than 18 (Boolean, never null); the arguments are those of `under_14`."""
    return minors(text, posted_at).struct.field("under_18")


def minors(text: pl.Expr, posted_at: pl.Expr | None = None) -> pl.Expr:
    """Both at once, for the cost of one: a struct of `under_14` and `under_18`."""
    year = pl.lit(None, pl.Int32) if posted_at is None else posted_at.dt.year()
    return pl.struct(text=text.fill_null(""), year=year).map_batches(
        _minors, return_dtype=pl.Struct(dict.fromkeys(LIMITS, pl.Boolean)), is_elementwise=True
    )


def _minors(posts: pl.Series) -> pl.Series:
    rows = posts.struct.unnest().with_row_index("row")
    told = rows.filter(_near().counted(rows["text"])["near"] > 0).with_columns(
        adult=_holds("adult"), writes_of_child=_holds("child"), age_at_most=pl.col("year") - 2000 - _born()
    )
    of_now = {
        limit: _holds(f"now {limit}") | (_holds(f"opening {limit}") & ~pl.col("writes_of_child")) for limit in LIMITS
    }
    perhaps = {
        limit: _holds(f"perhaps {limit}") | (_holds(f"perhaps opening {limit}") & ~pl.col("writes_of_child"))
        for limit in LIMITS
    }
    born_late = {limit: (pl.col("age_at_most") < years).fill_null(False) for limit, years in LIMITS.items()}
    told = told.select(
        "row", **{limit: of_now[limit] | born_late[limit] | (perhaps[limit] & ~pl.col("adult")) for limit in LIMITS}
    )
    found = rows.select("row").join(told, on="row", how="left", maintain_order="left")
    return found.select(
        pl.struct(
            pl.col("under_14").fill_null(False), under_18=(pl.col("under_14") | pl.col("under_18")).fill_null(False)
        ).alias(posts.name)
    ).to_series()


@cache
def _near() -> Words:
    return Words({"near": spelled("|".join(lexicon("minors")["near"]))})


def _holds(name: str) -> pl.Expr:
    return pl.col("text").str.contains(_patterns()[name])


def _born() -> pl.Expr:
    """The last two figures of the year in which the writer says to be born."""
    return pl.coalesce(pl.col("text").str.extract(pattern) for pattern in _born_patterns()).cast(pl.Int32)


@cache
def _born_patterns() -> tuple[str, ...]:
    words = lexicon("minors")
    return tuple(_filled(pattern, {"self": words["self"]}) for pattern in words["born"]["year"])


@cache
def _patterns() -> dict[str, str]:
    """One pattern for each question that is asked of a text."""
    words: dict[str, Any] = lexicon("minors")
    now, perhaps = words["now"], words["perhaps"]
    shared = {name: words[name] for name in ("self", "before", "after", "during", "opening", "not_yet")}

    def made(patterns: list[str], who: str) -> str:
        own = {
            "age": words["ages"][who],
            "grade": words["grades"].get(who, _NEVER),
            "exam": words["exams"].get(who, _NEVER),
        }
        return alternation(_filled(pattern, {**shared, **own}) for pattern in patterns)

    patterns = {"child": words["child"]}
    for limit in LIMITS:
        patterns[f"now {limit}"] = made(now["age"] + now["plain"][limit] + words["english"][limit], limit)
        patterns[f"opening {limit}"] = made(now["opening"], limit)
        patterns[f"perhaps {limit}"] = made(perhaps["age"] + perhaps["grade"] + perhaps["plain"][limit], limit)
        patterns[f"perhaps opening {limit}"] = made(perhaps["opening"], limit)
    grown = now["age"] + now["opening"] + perhaps["age"] + words["english"]["adult"]
    return {**patterns, "adult": made(grown, "adult")}


def _filled(pattern: str, words: dict[str, str]) -> str:
    """`pattern` with each {name} replaced; braces that count (`{0,4}`) stay."""
    for name, word in words.items():
        pattern = pattern.replace(f"{{{name}}}", word)
    return pattern
