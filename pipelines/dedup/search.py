"""Which texts are nearly the same, for the stages: computed in this process or on Ray, with the same result."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import polars as pl

from pipelines.dedup.duplicates import find_duplicates
from schemas.ids import digest

# texts → a name for each: texts of one cluster have one name, the smallest digest among them.
Search = Callable[[pl.Series], pl.Series]


@contextmanager
def searching(engine: str) -> Iterator[Search]:
    """`name_clusters` by an engine (`pipelines.settings.engine`): `one` is this process; `ray` is connected once."""
    if engine != "ray":
        yield name_clusters
        return
    from pipelines.dedup.on_ray import connected, find_duplicates_on_ray

    with connected():
        yield partial(name_clusters, find=find_duplicates_on_ray)


def name_clusters(texts: pl.Series, find: Callable[..., pl.DataFrame] = find_duplicates) -> pl.Series:
    """The name of each text's cluster of near-duplicates; null for a null."""
    distinct = pl.DataFrame({"text": texts.drop_nulls().unique()})
    distinct = distinct.with_columns(digest=digests(distinct["text"]))
    # In mode "fast": nobody sees a signature here, and every pair is verified whatever made it a candidate.
    clusters = find(distinct["text"], mode="fast", ids=distinct["digest"])
    named = distinct.with_columns(cluster=clusters["cluster_id"]).select(
        "text", name=pl.col("digest").min().over("cluster")
    )
    return pl.DataFrame({"text": texts}).join(named, on="text", how="left", maintain_order="left")["name"]


def digests(texts: pl.Series) -> pl.Series:
    """What names a text where the text itself must not be: 16 hex digits each."""
    return pl.Series([digest(one) for one in texts], dtype=pl.String)
