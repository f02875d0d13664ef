"""From components to clusters: who survives, how many there are, how similar they are to the survivor."""

from collections.abc import Callable

import numpy as np
import polars as pl

from pipelines.core.kernels import Keys, Shares, Words
from pipelines.dedup.jaccard import Edges

Order = Callable[[Words], pl.DataFrame]
Similarity = Callable[[Words, Words], Shares]


def clusters(components: Words, firsts: Words, order: Order, similarity: Similarity) -> pl.DataFrame:
    """The clusters of n rows, as `find_duplicates` returns them.

    Args:
        components: uint32 [n], a row that stands for each row's component.
        firsts: uint32 [n], the first row with the same text.
        order: gives for rows (uint32 [m]) that are not alone a frame of m rows: `earliest`, `length`, `id`.
        similarity: gives the similarity of two rows each (uint32 [k], uint32 [k] → float64 [k]); it is asked for the
            first rows of different texts only.
    """
    n = len(components)
    sizes = np.bincount(components, minlength=n).astype(np.uint32)[components]
    crowded = np.flatnonzero(sizes > 1).astype(np.uint32)
    survivors = np.arange(n, dtype=np.uint32)
    survivors[crowded] = _survivors(components[crowded], crowded, order(crowded))

    similarities = np.ones(n)
    differing = crowded[firsts[survivors[crowded]] != firsts[crowded]]
    texts, place = np.unique(firsts[differing], return_inverse=True)
    if len(texts):
        standing = np.empty(n, np.uint32)
        standing[firsts[differing]] = firsts[survivors[differing]]
        pairs = np.argsort(standing[texts], kind="stable")  # the survivor's text is read once for all of its cluster
        measured = np.empty(len(texts))
        measured[pairs] = similarity(standing[texts[pairs]], texts[pairs])
        similarities[differing] = measured[place]
    return pl.DataFrame(
        {
            "row": np.arange(n, dtype=np.uint32),
            "cluster_id": survivors,
            "keep": survivors == np.arange(n),
            "cluster_size": sizes,
            "similarity": similarities,
        }
    )


def _survivors(components: Words, rows: Words, order: pl.DataFrame) -> Words:
    """For each of `rows` the row of its component that is earliest, then longest, then smallest of id."""
    ordered = order.select("earliest", "length", "id").with_columns(component=components, row=rows)
    by = ["earliest", "length", "id", "row"]
    survivor = (
        ordered.sort(by, descending=[False, True, False, False], nulls_last=True)
        .with_columns(survivor=pl.col("row").first().over("component"))
        .sort("row")["survivor"]
    )
    return survivor.to_numpy()


def remembering(edges: list[Edges], similarity: Similarity) -> Similarity:
    """`similarity`, asked only for pairs that are not among `edges`."""
    left, right, known = (np.concatenate(parts) for parts in zip(*edges, strict=True))
    pairs = _pairs(left, right)
    order = np.argsort(pairs)
    pairs, known = np.append(pairs[order], np.uint64(0)), np.append(known[order], 0.0)  # no pair has the number 0

    def remembered(left: Words, right: Words) -> Shares:
        asked = _pairs(left, right)
        places = np.searchsorted(pairs[:-1], asked)
        new = pairs[places] != asked
        made: Shares = known[places]
        made[new] = similarity(left[new], right[new])
        return made

    return remembered


def _pairs(left: Words, right: Words) -> Keys:
    """One number for each two rows, whichever comes first."""
    return np.minimum(left, right).astype(np.uint64) << np.uint64(32) | np.maximum(left, right)
