"""Writers who say that they are minors, by the patterns of `lexicons/minors.toml`.

The data of children under 14 are sensitive by law (PIPL Art. 28): their posts are dropped. Those of minors stay out of
everything that trains. A school year is a sign as well: primary school counts as under 14, what follows as under 18,
unless the writer says to be 18 or older. Who tells of none is under 18 where enough words of a pupil's days stand
together.
"""

from functools import cache, partial
from typing import Any

import polars as pl

from pipelines.text.lexicon import alternation, filled, lexicon
from pipelines.text.pii.placeholders import without_placeholders
from pipelines.text.words import Words, spelled

LIMITS = {"under_14": 14, "under_18": 18}
# Words of the lexicon that its patterns use, and tables of it of which each pattern takes one line.
_SHARED = (
    *("self", "before", "after", "during", "opening", "not_yet", "clause", "so_far"),
    *("class", "pupil", "named_school", "kin", "friend", "then", "past"),
)
_OWN = ("age", "school", "child_age", "child_school")  # kinds of words that are told of the writer
_TABLES = {"age": "ages", "grade": "grades", "school": "schools", "middle": "middle"}


def under_18(text: pl.Expr, posted_at: pl.Expr | None = None, *, answers: bool = False) -> pl.Expr:
    """Whether the writer says to be younger than 18 (Boolean, never null); the arguments are those of `minors`."""
    return minors(text, posted_at, answers=answers).struct.field("under_18")


def minors(text: pl.Expr, posted_at: pl.Expr | None = None, *, answers: bool = False) -> pl.Expr:
    """Whether the writer says to be younger than 14, and than 18: a struct of `under_14` and `under_18`, never null.

    Without `posted_at` a year of birth says nothing, and a placeholder of personal data never does. `text` is in
    Simplified Chinese or in English. `answers`: it answers somebody, whose the school years and exams are that nobody
    is named for.
    """
    year = pl.lit(None, pl.Int32) if posted_at is None else posted_at.dt.year()
    limits = pl.Struct(dict.fromkeys(LIMITS, pl.Boolean))
    posts = pl.struct(text=text.fill_null(""), year=year)
    return posts.map_batches(partial(_minors, answers=answers), return_dtype=limits, is_elementwise=True)


def _minors(posts: pl.Series, *, answers: bool) -> pl.Series:
    written = without_placeholders(posts.struct.field("text"), "某")
    counted = posts.struct.unnest().with_columns(written, *_near().counted(written).values())
    # The patterns are put to no others than the texts that hold a word of their kind.
    near = [pl.when(pl.col(kind) > 0).then("text").otherwise(pl.lit("")).alias(kind) for kind in ("english", "born")]
    counted = counted.with_columns(life=_life())
    own = pl.when((pl.col("age") > 0) | (pl.col("school") > 0) | pl.col("life")).then("text").otherwise(pl.lit(""))
    marked = counted.select("year", "life", *near, *_OWN, whole=own).with_columns(own=_cut(pl.col("whole")))
    marked = marked.with_columns(
        pl.when(pl.col(kind) > 0).then("own").otherwise(pl.lit("")).alias(kind) for kind in _OWN
    )
    marked = marked.with_columns(
        *(_holds(*one) for one in _signs()),
        years=pl.col("year") - 2000 - _born(),  # of who was born on the first of January: others are younger
    )
    marked = marked.with_columns(pl.col("passing under_18") | pl.col("life"))
    # What may outweigh a sign is looked for where there is one.
    signed = pl.any_horizontal(name for _, name, _ in _signs())
    texts = [pl.when(signed).then(kind).otherwise(pl.lit("")).alias(kind) for kind in ("own", "whole", "english")]
    marked = marked.with_columns(texts).with_columns(_holds(*one) for one in _doubts())
    passing = pl.any_horizontal(f"passing {limit}" for limit in LIMITS)
    marked = marked.with_columns(grown=_now("whole", passing).str.contains(_word("grown")))
    of_age = pl.any_horizontal("adult", "adult english")
    adult = of_age | pl.col("grown_now")
    signs = {
        limit: pl.col(f"now {limit}")
        | pl.col(f"english {limit}")
        | (pl.any_horizontal(f"said age {limit}", f"said school {limit}") & ~adult)
        | (pl.col(f"alone age {limit}") & ~of_age & ~pl.col("elder"))
        | (pl.col(f"alone school {limit}") & ~adult & ~pl.col("elder") & (not answers))
        | (pl.col(f"passing {limit}") & ~adult & ~pl.col("elder") & ~pl.col("grown") & (not answers))
        | (pl.col("years") < years).fill_null(False)
        for limit, years in LIMITS.items()
    }
    under_18 = signs["under_14"] | signs["under_18"]
    return marked.select(pl.struct(under_14=signs["under_14"], under_18=under_18).alias(posts.name)).to_series()


@cache
def _near() -> Words:
    words: dict[str, Any] = lexicon("minors", __file__)
    life = {"student": words["life"]["student"]} | {f"life {n}": line for n, line in enumerate(words["life"]["lines"])}
    return Words({kind: spelled(some) for kind, some in (words["near"] | life).items()})


def _life() -> pl.Expr:
    """Whether the text tells of a pupil's days, and not of a student's."""
    words: dict[str, Any] = lexicon("minors", __file__)["life"]
    lines = pl.sum_horizontal(pl.col(f"life {n}") > 0 for n in range(len(words["lines"])))
    pupil: pl.Expr = (lines >= words["least"]) & (pl.col("student") == 0)
    return pupil & ~_now("text", pupil).str.contains(words["older"])


def _now(text: str, where: pl.Expr) -> pl.Expr:
    """`text`, where asked for, without what is said of a life to come and of the lives of others."""
    return pl.when(where).then(text).otherwise(pl.lit("")).str.replace_all(_word("future"), "他")


def _born() -> pl.Expr:
    """The last two figures of the year in which the writer says to be born."""
    words = lexicon("minors", __file__)
    years = (filled(pattern, {"self": words["self"]}) for pattern in words["born"]["year"])
    return pl.coalesce(pl.col("born").str.extract(year) for year in years).cast(pl.Int32)


def _holds(kind: str, name: str, patterns: list[str]) -> pl.Expr:
    # One by one: the engine is slower by far with the alternation of them all.
    return pl.any_horizontal(pl.col(kind).str.contains(pattern) for pattern in patterns).alias(name)


def _cut(text: pl.Expr) -> pl.Expr:
    """`text` without what is said of somebody else or of a time gone by."""
    for pattern in _made(lexicon("minors", __file__)["cut"]["told"], "any"):
        text = text.str.replace_all(pattern, "他")
    return text


def _word(name: str) -> str:
    return str(lexicon("minors", __file__)[name])


@cache
def _signs() -> list[tuple[str, str, list[str]]]:
    """The kind of words that must be near, what they show, and the patterns of which any does."""
    words: dict[str, Any] = lexicon("minors", __file__)
    signs = []
    for limit, age, school in (("under_14", "child_age", "child_school"), ("under_18", "age", "school")):
        signs += [
            (age, f"now {limit}", _made(words["now"]["age"] + words["now"][limit], limit)),
            (age, f"said age {limit}", _made(words["said"]["age"], limit)),
            (school, f"said school {limit}", _made(words["said"]["school"] + words["said"][limit], limit)),
            (age, f"alone age {limit}", _made(words["alone"]["age"], limit)),
            (school, f"alone school {limit}", _made(words["alone"]["school"], limit)),
            (school, f"passing {limit}", _made(words["passing"][limit], limit)),
            ("english", f"english {limit}", words["english"][limit]),
        ]
    return signs


@cache
def _doubts() -> list[tuple[str, str, list[str]]]:
    """What may outweigh a sign of a minor, in the form of `_signs`; `whole` is the text with nothing cut out."""
    words: dict[str, Any] = lexicon("minors", __file__)
    ages = words["now"]["age"] + words["said"]["age"] + words["said"]["adult"] + words["alone"]["age"]
    return [
        ("own", "adult", [alternation(_made(ages, "adult"))]),
        ("whole", "elder", [words["elder"]]),
        ("whole", "grown_now", _made([words["grown_now"]], "any")),
        ("english", "adult english", words["english"]["adult"]),
    ]


@cache
def _filled(pattern: str, who: str) -> str:
    words: dict[str, Any] = lexicon("minors", __file__)
    shared = {name: words[name] for name in _SHARED}
    own = {name: words[table][who] for name, table in _TABLES.items() if who in words[table]}
    return filled(filled(pattern, shared), own)


def _made(patterns: list[str], who: str) -> list[str]:
    """The patterns with the ages and school years of `who`: a limit, an adult, any."""
    return [_filled(pattern, who) for pattern in patterns]
