"""k-anonymity: how many others a seeker could be, by what the text tells together.

Names, schools, employers, hospitals and addresses are placeholders by now, and a released row has no author, address or
day. The quasi-identifiers left in a text are age, city or province, stage of school and occupation. One of them points
at nobody; two or more may, where few others share them. So rows are classed by their quasi-identifiers (k-anonymity,
Sweeney 2002), and classes of fewer than K are counted; a class includes the rows that have more of them. It is a
warning: what one text alone has in this corpus may be true of thousands outside of it.
"""

from collections.abc import Iterator
from functools import cache
from itertools import combinations

import polars as pl

from pipelines.release.checks.released import Released, finding
from pipelines.store.release_manifest import Finding
from pipelines.text.lexicon import lexicon
from pipelines.text.pii import vocabulary

K = 5  # ours
_TOGETHER = 2  # as many must be told for a row to belong to a class
_FIGURES = ["", *"一二三四五六七八九"]


def k_anonymity(released: Released) -> Iterator[Finding]:
    """Seekers whose age, place, school and job fewer than K share, themselves among them."""
    seekers = _seekers(released)
    few = pl.concat(
        _few(seekers, together)
        for size in range(_TOGETHER, len(_patterns()) + 1)
        for together in combinations(_patterns(), size)
    )
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
