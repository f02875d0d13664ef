"""Where a stage asks which texts are nearly the same: of this process or of Ray, with the same answer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import polars as pl

from schemas.ids import digest

# texts → a name for each: texts of one cluster have one name, the smallest digest among them.
Search = Callable[[pl.Series], pl.Series]


def search_by(engine: str = "one") -> Search:
    """The search of an engine: `one` (this process) or `ray` (`pipelines.settings.engine`)."""
    return partial(_search, engine)


@contextmanager
def searching(engine: str) -> Iterator[Search]:
    """`search_by` for several searches; a cluster of Ray is connected to, or started, once for all of them."""
    if engine != "ray":
        yield search_by(engine)
        return
    from pipelines.dedup.on_ray import connected

    with connected():
        yield search_by(engine)


def _search(engine: str, texts: pl.Series) -> pl.Series:
    distinct = pl.DataFrame({"text": texts.drop_nulls().unique()})
    distinct = distinct.with_columns(digest=digests(distinct["text"]))
    # In mode "fast": nobody sees a signature here, and every pair is verified whatever made it a candidate.
    if engine == "ray":
        from pipelines.dedup.on_ray import find_duplicates_on_ray

        clusters = find_duplicates_on_ray(distinct["text"], mode="fast", ids=distinct["digest"])
    else:
        from pipelines.dedup.duplicates import find_duplicates

        clusters = find_duplicates(distinct["text"], mode="fast", ids=distinct["digest"])
    named = distinct.with_columns(cluster=clusters["cluster_id"]).select(
        "text", name=pl.col("digest").min().over("cluster")
    )
    return pl.DataFrame({"text": texts}).join(named, on="text", how="left", maintain_order="left")["name"]


def digests(texts: pl.Series) -> pl.Series:
    """What a text is known by where the text itself must not stand: 16 hex digits each."""
    return pl.Series([digest(one) for one in texts], dtype=pl.String)
