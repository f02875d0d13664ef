"""What ties rows together beyond equal texts: texts that are nearly equal, or equal but for marks, and passages that
two rows share.

A tie is a name that rows have in common, as a link is, but it follows from all texts that are there and is remembered
nowhere. Ties must not move a row that has its split. So where nearly equal texts hang together by a chain from one
split to another, their pairs tie them and not the chain: what is in the middle falls, and its ends stay. A
passage that already stands on two sides, or that so many texts have that it is a formula, ties nobody.
"""

import numpy as np
import polars as pl

from pipelines.core.arrow import buffers
from pipelines.dedup.jaccard import similarities
from pipelines.dedup.links import TELLING
from pipelines.dedup.passages import LENGTH, passages
from pipelines.dedup.search import Search, digests

SIMILAR = 0.8
# A passage of more texts than these is a greeting, a form of a site, a song: it makes no two rows one story.
FORMULA = 50

_TIES = {"row_id": pl.String, "tie": pl.String}


def ties(texts: pl.DataFrame, standing: pl.DataFrame, search: Search) -> pl.DataFrame:
    """The ties of rows.

    Args:
        texts: `row_id`, `text`, `link` and `title` of posts and dialogues together; titles are too short to be nearly
            equal.
        standing: `row_id`, `split` of the rows that have their split already (`pipelines.split.splits.standing_rows`).
        search: What finds near-duplicates.

    Returns:
        `row_id`, `ties`; a row without any is not there.
    """
    told = texts.filter(~pl.col("title") & (pl.col("text").str.len_chars() >= TELLING))
    told = told.join(standing, on="row_id", how="left").select("row_id", "text", "link", "split")
    found = pl.concat([_near(told, search), _shared(told), _bare(told)])
    return found.group_by("row_id").agg(ties=pl.col("tie").unique().sort()).sort("row_id")


def _near(told: pl.DataFrame, search: Search) -> pl.DataFrame:
    """`row_id`, `tie` of rows with nearly equal texts."""
    named = told.with_columns(tie="n:" + search(told["text"]))
    alike = named.filter(pl.col("link").n_unique().over("tie") > 1)
    torn = pl.col("split").drop_nulls().n_unique().over("tie") > 1
    pairs = [_pairs(chain) for chain in alike.filter(torn).partition_by("tie")]
    return pl.concat([pl.DataFrame(schema=_TIES), alike.filter(~torn).select("row_id", "tie"), *pairs])


def _pairs(chain: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `tie` of rows with nearly equal texts, each pair of texts being a tie; the square of a few."""
    texts = chain.unique("link").sort("link")
    data, offsets = buffers(texts["text"])
    rows = np.arange(texts.height, dtype=np.uint32)
    near = [
        (one, other)
        for one in rows
        for other in rows[one + 1 :][
            similarities(data, offsets, np.full(len(rows) - one - 1, one, np.uint32), rows[one + 1 :]) >= SIMILAR
        ]
    ]
    links = texts["link"].to_list()
    tied = [(links[row], f"n:{links[one]}{links[other]}") for one, other in near for row in (one, other)]
    pairs = pl.DataFrame(tied, schema={"link": pl.String, "tie": pl.String}, orient="row")
    return chain.select("row_id", "link").join(pairs, on="link").select("row_id", "tie")


def _shared(told: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `tie` of rows that share a passage."""
    long = told.filter(pl.col("text").str.len_bytes() >= LENGTH)
    texts = long.unique("link").select("link", "text")
    found = passages(texts["text"]).unique()
    met = pl.len().over("passage")
    found = found.filter((met > 1) & (met <= FORMULA))
    found = found.with_columns(link=texts["link"].gather(found["row"]))
    held = long.select("row_id", "link", "split").join(found.select("link", "passage"), on="link")
    telling = (pl.col("row_id").n_unique().over("passage") > 1) & (
        pl.col("split").drop_nulls().n_unique().over("passage") < 2
    )
    named = pl.format("p:{}", pl.col("passage"))
    return held.filter(telling).select("row_id", tie=named).unique()


def _bare(told: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `tie` of rows whose texts differ in marks and pictures alone."""
    bare = told.with_columns(bare=pl.col("text").str.replace_all(r"[\p{P}\p{S}]", ""))
    bare = bare.filter(pl.col("bare").str.len_chars() >= TELLING)
    met = pl.col("link").n_unique().over("bare")
    alike = bare.filter((met > 1) & (met <= FORMULA) & (pl.col("split").drop_nulls().n_unique().over("bare") < 2))
    return alike.select("row_id", tie="b:" + digests(alike["bare"])).unique()
