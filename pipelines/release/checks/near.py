"""Near-duplicates across splits: what was learnt by heart would pass for understanding."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from pipelines.core.arrow import buffers
from pipelines.dedup.duplicates import find_duplicates
from pipelines.dedup.group_keys import LONG, SIMILAR, TELLING
from pipelines.dedup.jaccard import similarities
from pipelines.release.checks.released import Released, finding
from pipelines.release.checks.texts import answers_alone, folded
from pipelines.store.release_manifest import Finding
from pipelines.text import keys


def near_duplicates(released: Released) -> Iterator[Finding]:
    """Pairs of texts of different splits whose shingles are at least as alike as those of one cluster.

    Compared are the openings of seekers, and all texts too long for a formula; labels and generic sentences are not.
    Punctuation, pictures and script do not count.
    """
    compared = _compared(released.texts)
    distinct = compared.select("text").unique().sort("text")
    clusters = find_duplicates(distinct["text"], SIMILAR, mode="fast")
    clustered = compared.join(distinct.with_columns(clusters.select("row", "cluster_id")), on="text")
    torn = clustered.filter(pl.col("split").n_unique().over("cluster_id") > 1)
    pairs = [pair for cluster in torn.partition_by("cluster_id") for pair in _pairs(cluster)]
    if pairs:
        hint = (
            "gongqing refresh puts such rows into one group, an older version that was promoted may tear them; "
            "those that differ in script or punctuation: have one of each pair erased (gongqing erase ROW_ID)"
        )
        what = f"{len(pairs):,} pairs of (nearly) equal texts stand in different splits"
        yield finding("near_duplicates", what, hint, pairs)


def _compared(texts: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `split`, `text` (folded) of what is compared."""
    spoken = texts.filter(~pl.col("part").is_in(["label", "generic"])).with_columns(text=answers_alone(pl.col("text")))
    length = keys.key(pl.col("text")).str.len_chars()
    telling = spoken.with_columns(length=length, text=folded(pl.col("text"))).filter(pl.col("length") >= TELLING)
    seeker = telling.filter(pl.col("part") == "seeker").sort("place")
    openings = seeker.unique(["config", "row_id"], keep="first", maintain_order=True)
    return pl.concat([openings, telling.filter(pl.col("length") >= LONG)]).select("row_id", "split", "text").unique()


def _pairs(cluster: pl.DataFrame) -> Iterator[str]:
    """The pairs of a cluster that are alike themselves, and not through others, and of different splits."""
    texts = cluster.select("text").unique().sort("text")["text"]
    places = {one: place for place, one in enumerate(texts)}
    rows = sorted({(row, split, places[one]) for row, split, one in cluster.select("row_id", "split", "text").rows()})
    data, offsets = buffers(texts)
    for at, (row, split, place) in enumerate(rows):
        others = [other for other in rows[at + 1 :] if other[1] != split]
        right = np.array([other[2] for other in others], np.uint32)
        alike = similarities(data, offsets, np.full(len(others), place, np.uint32), right) >= SIMILAR
        for (other, its_split, _), near in zip(others, alike, strict=True):
            if near:
                yield f"{row} ({split}) ~ {other} ({its_split})"
