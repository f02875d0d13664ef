"""Writers who say that they are minors, by the patterns of `lexicons/minors.toml`.

The data of children under 14 are sensitive by law (PIPL Art. 28): their posts are dropped. Those of minors stay out of
everything that trains. A school year is a sign as well: primary school counts as under 14, what follows as under 18,
unless the writer says to be 18 or older.
"""

from functools import cache
from typing import Any

import polars as pl

from pipelines.text.lexicon import alternation, filled, lexicon
from pipelines.text.words import Words, spelled

LIMITS = {"under_14": 14, "under_18": 18}
# Words of the lexicon that its patterns use.
_SHARED = (
    *("self", "before", "after", "during", "opening", "not_yet"),
    *("clause", "so_far", "other", "then", "class", "pupil", "named_school"),
)


def under_18(text: pl.Expr, posted_at: pl.Expr | None = None) -> pl.Expr:
    """Whether the writer says to be younger than 18 (Boolean, never null); the arguments are those of `minors`."""
    return minors(text, posted_at).struct.field("under_18")


def minors(text: pl.Expr, posted_at: pl.Expr | None = None) -> pl.Expr:
    """Whether the writer says to be younger than 14, and than 18: a struct of `under_14` and `under_18`, never null.

    Without `posted_at` a year of birth says nothing. `text` is in Simplified Chinese or in English.
    """
    year = pl.lit(None, pl.Int32) if posted_at is None else posted_at.dt.year()
    return pl.struct(text=text.fill_null(""), year=year).map_batches(
        _minors, return_dtype=pl.Struct(dict.fromkeys(LIMITS, pl.Boolean)), is_elementwise=True
    )


def _minors(posts: pl.Series) -> pl.Series:
    marked = posts.struct.unnest().with_columns(_near().counted(posts.struct.field("text")).values())
    # The patterns are put to no others than the texts that hold a word of their kind.
    near = [pl.when(pl.col(kind) > 0).then("text").otherwise(pl.lit("")).alias(kind) for kind in _near().names]
    marked = marked.select("year", *near)
    marked = marked.with_columns(
        *(_holds(*one) for one in _patterns()),
        years=pl.col("year") - 2000 - _born(),  # of who was born on the first of January: others are younger
    )
    # What may outweigh a sign is looked for where there is one.
    signed = pl.any_horizontal(f"{kind} {name}" for kind, name, _ in _patterns())
    kinds = [pl.when(signed).then(kind).otherwise(pl.lit("")).alias(kind) for kind in _near().names]
    marked = marked.with_columns(kinds).with_columns(_holds(*one) for one in _doubts())
    of_child = pl.any_horizontal("age of_child", "grade of_child")
    adult = pl.any_horizontal("age adult", "english adult")
    grown = pl.any_horizontal("age grown", "grade grown")
    # Nothing that an adult may also say keeps a post whose writer says to be a child.
    grown_now = {"under_14": pl.lit(False), "under_18": pl.any_horizontal("age grown_now", "grade grown_now")}
    in_school = pl.col("school any") & ~pl.col("grade of_other") & ~of_child & ~adult & ~grown
    for past in ("teacher", "college", "memory"):
        in_school &= ~pl.col(f"school {past}")
    signs = {
        limit: pl.col(f"age now {limit}")
        | pl.col(f"english {limit}")
        | (pl.col(f"age opening {limit}") & ~of_child)
        | (pl.col(f"age perhaps {limit}") & ~pl.col("age then") & ~adult & ~grown_now[limit])
        | (pl.col(f"grade {limit}") & ~adult & ~grown_now[limit] & ~pl.col("grade then") & ~pl.col("grade kin"))
        | (pl.col(f"grade opening {limit}") & ~of_child & ~adult & ~grown_now[limit] & ~pl.col("grade examined"))
        | (pl.col(f"age alone {limit}") & ~pl.col("age of_other") & ~of_child & ~adult & ~grown)
        | (pl.col(f"grade alone {limit}") & ~pl.col("grade of_other") & ~of_child & ~adult & ~grown)
        | (pl.col("years") < years).fill_null(False)
        for limit, years in LIMITS.items()
    }
    under_18 = signs["under_14"] | signs["under_18"] | in_school
    return marked.select(pl.struct(under_14=signs["under_14"], under_18=under_18).alias(posts.name)).to_series()


@cache
def _near() -> Words:
    return Words({kind: spelled(words) for kind, words in lexicon("minors", __file__)["near"].items()})


def _born() -> pl.Expr:
    """The last two figures of the year in which the writer says to be born."""
    words = lexicon("minors", __file__)
    years = (filled(pattern, {"self": words["self"]}) for pattern in words["born"]["year"])
    return pl.coalesce(pl.col("born").str.extract(year) for year in years).cast(pl.Int32)


def _holds(kind: str, name: str, pattern: str) -> pl.Expr:
    return pl.col(kind).str.contains(pattern).alias(f"{kind} {name}")


@cache
def _patterns() -> list[tuple[str, str, str]]:
    """The kind of words that must be near, what it shows, and the pattern."""
    words: dict[str, Any] = lexicon("minors", __file__)
    now, perhaps, alone, english = (words[name] for name in ("now", "perhaps", "alone", "english"))
    patterns = []
    for limit in LIMITS:
        patterns += [
            ("age", f"now {limit}", _made(now["age"] + now["plain"][limit], limit)),
            ("age", f"opening {limit}", _made(now["opening"], limit)),
            ("age", f"perhaps {limit}", _made(perhaps["age"], limit)),
            ("grade", limit, _made(perhaps["grade"] + perhaps["plain"][limit], limit)),
            ("grade", f"opening {limit}", _made(perhaps["opening"], limit)),
            ("age", f"alone {limit}", _made(alone["age"] + alone["plain"]["age"][limit], limit)),
            ("grade", f"alone {limit}", _made(alone["grade"] + alone["plain"]["grade"][limit], limit)),
            ("english", limit, alternation(english[limit])),
        ]
    return [*patterns, ("school", "any", _made(words["school"]["any"], "any"))]


@cache
def _doubts() -> list[tuple[str, str, str]]:
    """What may outweigh a sign of a minor, in the form of `_patterns`."""
    words: dict[str, Any] = lexicon("minors", __file__)
    now, perhaps, alone, english = (words[name] for name in ("now", "perhaps", "alone", "english"))
    return [
        ("age", "of_child", words["child"]),
        ("grade", "of_child", words["child"]),
        *(("grade", whose, words[whose]) for whose in ("examined", "kin")),
        ("age", "of_other", _made(["{other}{age}"], "any")),
        ("grade", "of_other", _made(["{other}{grade}"], "any")),
        ("grade", "then", _made(["{then}{grade}"], "any")),
        ("age", "then", _made(["{then}{age}周?岁"], "any")),
        *(("school", past, words[past]) for past in ("teacher", "college", "memory")),
        ("age", "grown", words["grown"]),
        ("grade", "grown", words["grown"]),
        *((kind, "grown_now", _made([words["grown_now"]], "any")) for kind in ("age", "grade")),
        ("age", "adult", _made(now["age"] + now["opening"] + perhaps["age"] + alone["age"], "adult")),
        ("english", "adult", alternation(english["adult"])),
    ]


def _made(patterns: list[str], who: str) -> str:
    """One pattern of these, with the ages and school years of `who`: a limit, an adult, any."""
    words: dict[str, Any] = lexicon("minors", __file__)
    own = {name: words[f"{name}s"].get(who, "") for name in ("age", "grade", "exam")}
    shared = {name: words[name] for name in _SHARED}
    return alternation(filled(pattern, {**shared, **own}) for pattern in patterns)
