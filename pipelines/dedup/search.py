"""Where a stage asks which texts are nearly the same: of this process, of an index on disk, or of Ray.

Whoever is asked, the answer is the same; the index hashes only what it has not seen, Ray uses several machines.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import polars as pl

from schemas.ids import digest

# (kind of the texts, texts) → a name for each: texts of one cluster have one name, the smallest digest among them.
Search = Callable[[str, pl.Series], pl.Series]


def search_by(engine: str = "one", folder: Path | None = None) -> Search:
    """The search of an engine.

    Args:
        engine: `one` (this process) or `ray`: see `pipelines.settings.engine`.
        folder: Where this process remembers what it has hashed, a folder for each kind of texts; nowhere if None.
    """
    return partial(_search, engine, folder)


@contextmanager
def searching(engine: str, folder: Path | None = None) -> Iterator[Search]:
    """`search_by` for several searches; a cluster of Ray is connected to, or started, once for all of them."""
    if engine != "ray":
        yield search_by(engine, folder)
        return
    from pipelines.dedup.on_ray import connected

    with connected():
        yield search_by(engine)


def _search(engine: str, folder: Path | None, kind: str, texts: pl.Series) -> pl.Series:
    distinct = pl.DataFrame({"text": texts.drop_nulls().unique()})
    distinct = distinct.with_columns(digest=digests(distinct["text"]))
    found = _clusters(engine, folder and folder / kind, distinct["digest"], distinct["text"])
    named = distinct.with_columns(cluster=found["cluster_id"]).select(
        "text", name=pl.col("digest").min().over("cluster")
    )
    return pl.DataFrame({"text": texts}).join(named, on="text", how="left", maintain_order="left")["name"]


def _clusters(engine: str, folder: Path | None, ids: pl.Series, texts: pl.Series) -> pl.DataFrame:
    # In mode "fast": nobody sees a signature here, and every pair is verified whatever made it a candidate.
    if engine == "ray":
        from pipelines.dedup.on_ray import find_duplicates_on_ray

        return find_duplicates_on_ray(texts, mode="fast", ids=ids)
    if folder is not None:
        from pipelines.dedup.index import Index

        return Index(folder, mode="fast").clusters(ids, texts)
    from pipelines.dedup.duplicates import find_duplicates

    return find_duplicates(texts, mode="fast", ids=ids)


def digests(texts: pl.Series) -> pl.Series:
    """What a text is known by where the text itself must not stand: 16 hex digits each."""
    return pl.Series([digest(one) for one in texts], dtype=pl.String)
