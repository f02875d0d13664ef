"""Near-duplicates of a column of texts: clusters, each with one survivor.

Equal texts are told by their digests. Of the distinct ones, those that share the key of a band are compared, and linked
where the Jaccard similarity of their char-5-grams reaches the threshold; a cluster is what is linked, directly or
through others. No pair is linked that was not verified, whatever the mode; what may be missed is a pair that shares
no band (`pipelines.dedup.bands`).
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.core.arrow import Texts, arrow, buffers_of
from pipelines.core.kernels import Shares, Words
from pipelines.dedup.bands import BANDS, Runs, band_keys, require_bands, runs
from pipelines.dedup.clusters import clusters, remembering
from pipelines.dedup.components import roots, singletons
from pipelines.dedup.contents import digests, new_seeds, tell_apart
from pipelines.dedup.jaccard import link, similarities
from pipelines.dedup.minhash import Mode
from pipelines.dedup.spill import Source, Spill, batches, chosen
from pipelines.errors import RequestError


def find_duplicates(
    texts: Texts,
    threshold: float = 0.8,
    mode: Mode = "exact",
    *,
    earliest: pl.Series | None = None,
    ids: pl.Series | None = None,
    num_perm: int = 128,
    bands: tuple[int, int] = BANDS,
    seed: int = 1,
    threads: int = 1,
) -> pl.DataFrame:
    """The clusters of near-duplicates among n texts.

    The survivor of a cluster is the one first by `earliest` (a sortable series, nulls last), then the longest in
    characters, then the smallest of `ids` (the row's number if none are given). Equal texts are always in one cluster,
    however short; a null is no text and stands alone. The clusters do not depend on the order of the texts.

    Returns:
        n rows in the order of the texts: `row`, `cluster_id` (row of the survivor), `keep` (whether it is the
        survivor), `cluster_size`, `similarity` (exact Jaccard with the survivor; of two members that are linked through
        others it may be below the threshold).

    Raises:
        RequestError: for a threshold outside of 0 < t ≤ 1, an unknown mode, bands that do not fit, a series of
            another length, or what is no column of texts.
    """
    require_threshold(threshold)
    column = arrow(texts)
    n = len(column)
    for order_by in (earliest, ids):
        if order_by is not None and len(order_by) != n:
            raise RequestError(f"{n} texts cannot be ordered by a series of {len(order_by)}", hint="give one of each")
    data, offsets = buffers_of(column)
    there = np.asarray(column.is_valid())
    series = pl.Series(column)
    firsts, distinct = tell_apart(digests(series, new_seeds()), there)

    keys = band_keys(data, offsets, mode, num_perm, bands, seed, rows=distinct, threads=threads)
    parents = singletons(n)
    edges = [link(data, offsets, runs(of_band, distinct), threshold, parents) for of_band in keys]

    def order(rows: Words) -> pl.DataFrame:
        chosen_earliest, chosen_ids = (given if given is None else given.gather(rows) for given in (earliest, ids))
        return _order(rows, series.gather(rows).str.len_chars(), chosen_earliest, chosen_ids)

    def similarity(left: Words, right: Words) -> Shares:
        return similarities(data, offsets, left, right)

    return clusters(roots(parents)[firsts], firsts, order, remembering(edges, similarity))


def find_duplicates_in(
    source: Source,
    column: str,
    folder: Path,
    threshold: float = 0.8,
    mode: Mode = "exact",
    *,
    earliest: str | None = None,
    ids: str | None = None,
    num_perm: int = 128,
    bands: tuple[int, int] = BANDS,
    seed: int = 1,
    threads: int = 1,
) -> pl.DataFrame:
    """What `find_duplicates` gives, for texts that stay on the disk.

    The source is read three times: for keys, for the texts of candidates, and for what decides who survives. Keys (8
    bytes a text and band) and the texts of candidates are kept in a folder within `folder` until the end. In memory
    are a batch of texts, then some 80 bytes a text: one band at a time.

    Args:
        source: a Parquet file, a folder of Parquet files (in the order of their names), or a call that gives record
            batches with the columns asked for, the same each time.
        column: the column of the texts.
        folder: where the space on disk is.
        earliest: the column that decides who survives; none if None.
        ids: the column that decides between equals; the row's number if None.

    The rest as in `find_duplicates`.

    Raises:
        RequestError: as `find_duplicates` does; if the source changes meanwhile; UnreadableFile if it is no Parquet
            file with these columns.
        OSError: where the disk is full.
    """
    require_threshold(threshold)
    require_bands(bands, num_perm)
    seeds = new_seeds()
    with TemporaryDirectory(dir=folder) as place:
        spill = Spill(Path(place))
        for batch in batches(source, [column]):
            texts = arrow(batch[column])
            data, offsets = buffers_of(texts)
            spill.append("there", np.asarray(texts.is_valid()))
            series = pl.Series(texts)
            spill.append("lengths", series.str.len_chars().fill_null(0).to_numpy())
            spill.append("digests", digests(series, seeds))
            for band, keys in enumerate(band_keys(data, offsets, mode, num_perm, bands, seed, threads=threads)):
                spill.append(f"keys-{band}", keys)

        there = spill.read("there", np.bool_)
        n = len(there)
        firsts, distinct = tell_apart(spill.read("digests", np.uint64).reshape(-1, 2), there)
        wanted = np.zeros(n, np.bool_)
        for band in range(bands[0]):
            found = runs(spill.read(f"keys-{band}", np.uint64)[distinct], distinct)
            wanted[found.rows] = True
            spill.append(f"rows-{band}", found.rows)
            spill.append(f"starts-{band}", found.starts)

        # From here on candidates are numbered among themselves: candidate i is row `candidates[i]`.
        data, offsets = spill.keep_texts(batch[column] for batch in chosen(source, [column], wanted))
        candidates = np.flatnonzero(wanted).astype(np.uint32)
        number = np.cumsum(wanted, dtype=np.uint32) - np.uint32(1)
        parents = singletons(len(candidates))
        edges = []
        for band in range(bands[0]):
            found = Runs(number[spill.read(f"rows-{band}", np.uint32)], spill.read(f"starts-{band}", np.int64))
            edge = link(data, offsets, found, threshold, parents)
            edges.append(edge._replace(left=candidates[edge.left], right=candidates[edge.right]))
        components = singletons(n)
        components[candidates] = candidates[roots(parents)]

        def order(rows: Words) -> pl.DataFrame:
            columns = {name for name in (earliest, ids) if name is not None}
            read = {}
            if columns and len(rows):
                table = pa.Table.from_batches(chosen(source, sorted(columns), _mask(rows, n)))
                read = {name: pl.Series(table[name]) for name in columns}
            return _order(
                rows, pl.Series(spill.read("lengths", np.uint32)[rows]), read.get(earliest or ""), read.get(ids or "")
            )

        def similarity(left: Words, right: Words) -> Shares:
            return similarities(data, offsets, number[left], number[right])

        return clusters(components[firsts], firsts, order, remembering(edges, similarity))


def _order(rows: Words, lengths: pl.Series, earliest: pl.Series | None, ids: pl.Series | None) -> pl.DataFrame:
    nothing = pl.Series([None]).new_from_index(0, len(rows))
    return pl.DataFrame(
        {
            "earliest": nothing if earliest is None else earliest,
            "length": lengths,
            "id": pl.Series(rows) if ids is None else ids,
        }
    )


def _mask(rows: Words, n: int) -> NDArray[np.bool_]:
    mask = np.zeros(n, np.bool_)
    mask[rows] = True
    return mask


def require_threshold(threshold: float) -> None:
    """Raises RequestError for what can be no threshold."""
    if not 0 < threshold <= 1:
        raise RequestError(
            f"{threshold} is no threshold of similarity", hint="choose one above 0, up to 1: 0.8 is usual"
        )
