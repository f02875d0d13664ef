"""What a release may not tell of people: personal data, signs of risk, minors, who stands out, who was erased.

The quasi-identifiers left in a text are age, city or province, stage of school and occupation. Two or more may point at
somebody, where few others share them: rows are classed by them (k-anonymity, Sweeney 2002), and classes of fewer than K
counted; a class includes the rows that have more of them. It is a warning: it may be true of thousands elsewhere.
"""

from collections.abc import Iterator
from functools import cache
from itertools import combinations

import polars as pl

from pipelines.release.checks.released import Released, finding
from pipelines.release.readings import Readings
from pipelines.store.release_manifest import Finding
from pipelines.store.suppression import SuppressionList, is_taken_down, taken_down
from pipelines.text.lexicon import lexicon
from pipelines.text.minors import under_18
from pipelines.text.pii import vocabulary
from pipelines.text.pii.redaction import find
from pipelines.text.risk import risk
from pipelines.text.script import as_simplified

# What may name a row: the figures of anything else are those of a hash or a counter as well.
_IN_IDS = ("phone", "email", "id_card")
_MOBILE = 11  # figures
_LEFT_OUT = "gongqing refresh leaves them out; a row that it does not see: gongqing erase ROW_ID"
K = 5  # ours
_TOGETHER = 2  # so many quasi-identifiers, and a row belongs to a class
_FIGURES = ["", *"一二三四五六七八九"]


def personal_data(released: Released) -> Iterator[Finding]:
    """Texts in which the finders of `pipelines.text.pii` still find something, placeholders being nothing;
    and posts and dialogues that their set names by a mobile number, an address or an identity card.
    """
    texts = released.texts
    cleaning = released.settings.cleaning
    distinct = texts["text"].unique()
    readings = Readings(released.home)
    # In what says nothing to the wide reading no other finds anything, but for a model of its own.
    nothing = readings.nothing_in(distinct.to_list())
    readings.save()
    distinct = distinct if cleaning.ner else distinct.filter(~pl.Series(nothing, dtype=pl.Boolean))
    spans = find(distinct, names=cleaning.names, ner=cleaning.ner)
    kinds = spans.group_by("row").agg(kinds=pl.col("kind").unique())
    held = kinds.select("kinds", text=distinct.gather(kinds["row"]))
    rows = texts.join(held, on="text").explode("kinds").unique(["row_id", "kinds"])
    if rows.height:
        counts = rows.group_by("kinds").len().sort("len", "kinds", descending=[True, False])
        what = "personal data are left: " + ", ".join(f"{kind} in {n:,} rows" for kind, n in counts.iter_rows())
        hint = "have these rows erased (gongqing erase ROW_ID), or mend the rules of pipelines/text/pii"
        yield finding("personal_data", what, hint, rows["row_id"].unique())
    # Of an id all counts, as its set gives it: a hash may hold a run of figures that looks like a number.
    known = released.sources.join(released.rows.select("origin").unique(), on="origin")
    ids = known.with_columns(source_id=pl.col("origin").str.strip_prefix(pl.col("source") + ":"))
    spans = find(ids["source_id"], names="none")
    length = ids["source_id"].str.len_chars().gather(spans["row"])
    whole = spans.filter((pl.col("start") == 0) & (pl.col("end") == length) & pl.col("kind").is_in(list(_IN_IDS)))
    rows = ids[whole.filter((pl.col("kind") != "phone") | (pl.col("end") == _MOBILE))["row"]]
    if rows.height:
        sets = sorted(set(rows["source"]))  # the id itself would be somebody's number
        what = f"{rows.height:,} posts or dialogues are named by a number or address of somebody's: {', '.join(sets)}"
        hint = "import the set again with another id, or with none (docs/mapping.md)"
        yield finding("personal_data", what, hint, sets, count=rows.height)


def risks(released: Released) -> Iterator[Finding]:
    """Rows with signs of risk: by the tables' own flags, by the second opinion of `topics`, by the rules read again.

    A warning where the settings allow such rows. Texts of supporters and models are not checked: they have to ask
    whether somebody is in danger.
    """
    opinions = released.table("topics").filter(pl.col("risk").list.len() > 0)
    flagged = released.sources.filter("risk")["origin"].to_list() + opinions["row_id"].to_list()
    texts = released.texts.filter(pl.col("part").is_in(["seeker", "answer"]))
    again = texts.filter(risk(pl.col("text")).list.len() > 0)
    if ids := _rows(released, flagged, again):
        allowed = released.settings.prompts.allow_risk
        what = f"{len(ids):,} rows show signs of risk to life or limb"
        hint = "the setting prompts.allow_risk lets them train" if allowed else _LEFT_OUT
        yield finding("risk", what, hint, ids, severity="warn" if allowed else "refuse")


def minors(released: Released) -> Iterator[Finding]:
    """Rows whose seeker, or whose answerer, says to be younger than 18. Nothing allows these."""
    flagged = released.sources.filter("under_18")["origin"].to_list()
    dates = released.rows.select("config", "row_id", "origin").join(
        released.sources.select("origin", "posted_at"), on="origin", how="left"
    )
    spoken = released.texts.filter(pl.col("part").is_in(["seeker", "answer"])).sort("place")
    # A seeker is one person, whose turns are read together; of answers each has another writer.
    alone = pl.when(pl.col("part") == "answer").then("place").otherwise(-1)
    by_writer = spoken.group_by("config", "row_id", "part", alone=alone, maintain_order=True)
    writers = by_writer.agg(pl.col("text").str.join("\n")).join(dates, on=["config", "row_id"], how="left")
    text, when = as_simplified(pl.col("text")), pl.col("posted_at")
    young = pl.when(part="answer").then(under_18(text, when, answers=True)).otherwise(under_18(text, when))
    again = writers.filter(young)
    if ids := _rows(released, flagged, again):
        yield finding("minors", f"{len(ids):,} rows are by writers who say to be younger than 18", _LEFT_OUT, ids)


def _rows(released: Released, origins: list[str], again: pl.DataFrame) -> list[str]:
    """The ids of the released rows that come from any of `origins`, or that stand in `again`."""
    flagged = released.rows.filter(pl.col("origin").is_in(origins))
    return sorted({*flagged["row_id"], *again["row_id"]})


def k_anonymity(released: Released) -> Iterator[Finding]:
    """Seekers whose age, place, school and job fewer than K share, themselves among them."""
    seekers = _seekers(released)
    sizes = range(_TOGETHER, len(_patterns()) + 1)
    few = pl.concat(_few(seekers, together) for size in sizes for together in combinations(_patterns(), size))
    if few.height:
        what = (
            f"{few.height:,} of {seekers.height:,} seekers tell {_TOGETHER} or more of {', '.join(_patterns())}, and "
            f"fewer than {K} of the release tell the same"
        )
        hint = "read these before they are published; of a person who can be recognised: gongqing erase ROW_ID"
        yield finding("k_anonymity", what, hint, few["name"], severity="warn")


def _few(seekers: pl.DataFrame, together: tuple[str, ...]) -> pl.DataFrame:
    """The seekers with exactly these quasi-identifiers, where with those who have more they are fewer than K."""
    company = seekers.drop_nulls(list(together)).filter(pl.len().over(together) < K)
    others = [pl.col(name).is_null() for name in _patterns() if name not in together]
    return company.filter(*others).select("name")


def _seekers(released: Released) -> pl.DataFrame:
    """`name` of each post or dialogue, and the quasi-identifiers of its seeker; null where the text has none."""
    origins = released.rows.select("config", "row_id", name=pl.coalesce("origin", "row_id"))
    seeker = released.texts.filter(pl.col("part") == "seeker").join(origins, on=["config", "row_id"])
    texts = seeker.unique(["name", "text"]).sort("name", "place", "text")
    whole = texts.group_by("name", maintain_order=True).agg(pl.col("text").str.join("\n"))
    values = {
        name: pl.coalesce(pl.col("text").str.extract(pattern) for pattern in patterns)
        for name, patterns in _patterns().items()
    }
    values["age"] = values["age"].map_elements(_in_figures, return_dtype=pl.String)
    return whole.select("name", **values)


def _in_figures(age: str) -> str:
    """二十五 as 25."""
    tens, ten, ones = age.partition("十")
    return f"{_FIGURES.index(tens) or 1}{_FIGURES.index(ones)}" if ten else age


@cache
def _patterns() -> dict[str, list[str]]:
    """The patterns of each quasi-identifier; the group of the first that matches is its value."""
    patterns: dict[str, list[str]] = lexicon("telling", __file__)
    cities = sorted(vocabulary.lexicon("places")["city"], key=len, reverse=True)
    return patterns | {"place": [f"({'|'.join(cities)})", *patterns["place"]]}


def erased(released: Released) -> Iterator[Finding]:
    """Rows of posts and dialogues that the takedown list names, or that were erased.

    An erasure rewrites every version that is there. A version that comes back afterwards, from a backup or another
    home, holds the row again.
    """
    suppression = SuppressionList(released.home)
    origins = [name for name in released.rows["origin"].unique() if name in suppression]
    listed = is_taken_down("origin", taken_down(released.home))
    rows = released.rows.filter(listed | pl.col("origin").is_in(origins))
    if rows.height:
        what = f"{rows.height:,} rows come from what was erased, or is to be taken down"
        hint = "erase it from the versions that hold it (gongqing erase --again, or ROW_ID), then gongqing refresh"
        yield finding("erased", what, hint, rows["row_id"])
