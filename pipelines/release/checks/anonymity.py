"""k-anonymity: how many others a seeker could be, by what the text tells together.

Names, schools, employers, hospitals and addresses are placeholders by now, and a released row has no author, no address
and no day. What a text still tells, and what somebody who knows a person knows as well, is an age, a city or province,
a stage of school, an occupation. One of them points at nobody; two or more may, where few others tell the same. So rows
are put into classes by what they tell (k-anonymity, Sweeney 2002), and classes of fewer than K are counted. To a class
belongs whoever tells the same, be it with something else: of whom only age and job are known may be any of these. It is
a warning: what one text alone says in this corpus may be true of thousands outside of it.
"""

from collections.abc import Iterator
from functools import cache
from itertools import combinations

import polars as pl

from pipelines.release.checks.released import Released, some
from pipelines.store.release_manifest import Finding
from pipelines.text.lexicon import lexicon
from pipelines.text.pii import vocabulary

K = 5  # ours
_TOGETHER = 2  # as many must be told for a row to belong to a class
_FIGURES = ["", *"一二三四五六七八九"]


def k_anonymity(released: Released) -> Iterator[Finding]:
    """Seekers who tell of age, place, school and job what fewer than K tell, themselves among them."""
    told = _told(released)
    few = pl.concat(
        _few(told, together)
        for size in range(_TOGETHER, len(_patterns()) + 1)
        for together in combinations(_patterns(), size)
    )
    if few.height:
        yield Finding(
            check="k_anonymity",
            severity="warn",
            count=few.height,
            what=f"{few.height:,} of {told.height:,} seekers tell {_TOGETHER} or more of {', '.join(_patterns())}, and "
            f"fewer than {K} of the release tell the same",
            hint="read these before they are published; whoever can be known by them: gongqing erase ROW_ID",
            examples=some(few["name"]),
        )


def _few(told: pl.DataFrame, together: tuple[str, ...]) -> pl.DataFrame:
    """The seekers who tell exactly these things, where with those who tell more they are fewer than K."""
    company = told.drop_nulls(list(together)).filter(pl.len().over(together) < K)
    others = [pl.col(name).is_null() for name in _patterns() if name not in together]
    return company.filter(*others).select("name")


def _told(released: Released) -> pl.DataFrame:
    """`name` of each post or dialogue, and what its seeker tells; null where nothing is told."""
    origins = released.rows.select("config", "row_id", name=pl.coalesce("origin", "row_id"))
    seeker = released.texts.filter(pl.col("part") == "seeker").join(origins, on=["config", "row_id"])
    texts = seeker.unique(["name", "text"]).sort("name", "place", "text")
    whole = texts.group_by("name", maintain_order=True).agg(pl.col("text").str.join("\n"))
    told = {
        name: pl.coalesce(pl.col("text").str.extract(pattern) for pattern in patterns)
        for name, patterns in _patterns().items()
    }
    told["age"] = told["age"].map_elements(_in_figures, return_dtype=pl.String)
    return whole.select("name", **told)


def _in_figures(age: str) -> str:
    """二十五 as 25: whoever writes it so is as old."""
    tens, ten, ones = age.partition("十")
    return f"{_FIGURES.index(tens) or 1}{_FIGURES.index(ones)}" if ten else age


@cache
def _patterns() -> dict[str, list[str]]:
    """The patterns of each thing that may be told; the group of the first that matches is what is told."""
    told: dict[str, list[str]] = lexicon("telling", __file__)
    cities = sorted(vocabulary.lexicon("places")["city"], key=len, reverse=True)
    return told | {"place": [f"({'|'.join(cities)})", *told["place"]]}
