"""Near-duplicates of a column of texts: clusters, each with one survivor.

Distinct texts that share the key of a band are compared, and linked where the Jaccard similarity of their char-5-grams
reaches the threshold. No pair is linked that was not verified; a pair that shares no band may be missed (`bands`).
"""

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.core.arrow import Texts, arrow, buffers_of, read_only
from pipelines.core.kernels import Bytes, Keys, Places, Shares, Words, by_range
from pipelines.dedup.bands import BANDS, band_keys, runs
from pipelines.dedup.components import Runs, roots, singletons
from pipelines.dedup.jaccard import link, no_links, similarities
from pipelines.dedup.minhash import Mode
from pipelines.errors import RequestError, UnreadableFile

# A Parquet file, a folder of such, or a call that gives batches of the columns asked for: the same rows each time.
Source = Path | Callable[[list[str]], Iterable[pa.RecordBatch]]

ROWS_A_BATCH = 8192
READ_AT_ONCE = 1 << 20  # bytes


def batches(source: Source, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of a source, a batch at a time. Raises UnreadableFile for what is no Parquet, or lacks a column."""
    if callable(source):
        yield from source(columns)
        return
    for path in sorted(source.glob("*.parquet")) if source.is_dir() else [source]:
        try:
            # Otherwise a whole group of rows is read ahead, and memory grows with its size.
            with pq.ParquetFile(path, pre_buffer=False, buffer_size=READ_AT_ONCE) as file:
                if unknown := set(columns) - set(file.schema_arrow.names):
                    raise UnreadableFile(f"there is no column {', '.join(sorted(unknown))}", where=path)
                yield from file.iter_batches(ROWS_A_BATCH, columns=columns, use_threads=False)
        except (OSError, pa.ArrowInvalid) as error:
            raise UnreadableFile(f"this cannot be read as Parquet: {error}", where=path) from error


def chosen(source: Source, columns: list[str], mask: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
    """The rows of a source for which `mask` (bool [n]) is true. Raises RequestError for other than n rows."""
    seen = 0
    for batch in batches(source, columns):
        yield batch.filter(pa.array(mask[seen : seen + len(batch)]))
        seen += len(batch)
    if seen != len(mask):
        raise RequestError(f"{seen} texts where {len(mask)} were read before", hint="let nobody write meanwhile")


class Spill(contextlib.ExitStack):
    """Arrays and texts in files without a name, in a folder: a killed process leaves nothing there."""

    def __init__(self, folder: Path | None) -> None:
        super().__init__()
        self._folder, self._files = folder, dict[str, IO[bytes]]()

    def _file(self, name: str) -> IO[bytes]:
        if name not in self._files:
            self._files[name] = self.enter_context(TemporaryFile(dir=self._folder))  # noqa: SIM115
        return self._files[name]

    def append(self, name: str, array: NDArray[Any]) -> None:
        """Adds to the end of an array, which nobody has read yet."""
        self._file(name).write(array.tobytes())  # `tofile` would not say that the disk is full

    def read(self, name: str, dtype: type[np.generic]) -> NDArray[Any]:
        """An array, whole; empty if nothing was ever added."""
        self._file(name).seek(0)
        return np.fromfile(self._file(name), dtype)

    def keep_texts(self, texts: Iterable[pa.Array]) -> tuple[Bytes, Places]:
        """Texts in the form of `pipelines.core.arrow.buffers`, their bytes left on the disk."""
        sizes = [np.zeros(1, np.int64)]
        for some in texts:
            data, offsets = buffers_of(arrow(some))
            self.append("texts", data[offsets[0] : offsets[-1]])
            sizes.append(np.diff(offsets))
        offsets = np.cumsum(np.concatenate(sizes))
        # Nothing cannot be mapped.
        self._file("texts").flush()
        data = np.memmap(self._file("texts"), np.uint8, "r") if offsets[-1] else np.zeros(0, np.uint8)
        return read_only(np.asarray(data)), read_only(offsets)


# Rows that are not alone (uint32 [m]) → a frame of m rows: `earliest`, `length`, `id`.
_Order = Callable[[Words], pl.DataFrame]
# Rows, and as many others → the similarity of each pair, float64 [k].
_Similarity = Callable[[Words, Words], Shares]


def find_duplicates(
    texts: Texts,
    threshold: float = 0.8,
    mode: Mode = "exact",
    *,
    earliest: pl.Series | None = None,
    ids: pl.Series | None = None,
) -> pl.DataFrame:
    """The clusters of near-duplicates among n texts.

    The survivor of a cluster is the one first by `earliest` (a sortable series, nulls last), then the longest in
    characters, then the smallest of `ids` (by default the row's number). Equal texts are always in one cluster,
    however short; a null is no text and stands alone. The clusters do not depend on the order of the texts.

    Returns:
        n rows in the order of the texts: `row`, `cluster_id` (row of the survivor), `keep` (whether it is the
        survivor), `cluster_size`, `similarity` (exact Jaccard with the survivor; of two members that are linked through
        others it may be below the threshold).

    Raises RequestError for a threshold outside of 0 < t ≤ 1, an unknown mode, a series of another length, or what is no
    column of texts.
    """
    column = arrow(texts)
    require_arguments(n := len(column), threshold, earliest, ids)
    data, offsets = buffers_of(column)
    series = pl.Series(column)
    firsts, distinct = _first_equal(_digests(series, _new_seeds()), np.asarray(column.is_valid()))

    parents, links = singletons(n), no_links(n)
    keys = band_keys(data, offsets, mode, BANDS, rows=distinct)

    def some_runs(begin: int, end: int) -> list[Runs]:
        return [runs(keys[band], distinct) for band in range(begin, end)]

    for each in chain.from_iterable(by_range(some_runs, len(keys), 1)):
        link(data, offsets, each, threshold, parents, links)

    def order(rows: Words) -> pl.DataFrame:
        chosen_earliest, chosen_ids = (given if given is None else given.gather(rows) for given in (earliest, ids))
        return _order(rows, series.gather(rows).str.len_chars(), chosen_earliest, chosen_ids)

    def similarity(left: Words, right: Words) -> Shares:
        return similarities(data, offsets, left, right, links)

    return _clusters(roots(parents)[firsts], firsts, order, similarity)


def find_duplicates_in(
    source: Source,
    column: str,
    folder: Path | None,
    threshold: float = 0.8,
    mode: Mode = "exact",
    *,
    earliest: str | None = None,
    ids: str | None = None,
) -> pl.DataFrame:
    """What `find_duplicates` gives, for texts that stay on the disk.

    The source is read three times. Keys (8 bytes a text and band) and the texts of candidates are kept in files in
    `folder` (the system's temporary one if None) until the end; in memory are a batch of texts, then some 160 bytes a
    text and 140 more a candidate: one band at a time.

    Args:
        source: a Parquet file, a folder of them (in the order of their names), or a call that gives record batches with
            the columns that it is called with, the same each time.
        column: the column of the texts; `earliest` and `ids`: those that decide who survives.

    Raises RequestError as `find_duplicates` does, and if the source changes meanwhile; UnreadableFile if it is no
    Parquet file with these columns; OSError where the disk is full.
    """
    require_arguments(0, threshold)
    seeds = _new_seeds()
    with Spill(folder) as spill:
        for batch in batches(source, [column]):
            texts = arrow(batch[column])
            data, offsets = buffers_of(texts)
            spill.append("valid", np.asarray(texts.is_valid()))
            series = pl.Series(texts)
            spill.append("lengths", series.str.len_chars().fill_null(0).to_numpy())
            spill.append("digests", _digests(series, seeds))
            for band, keys in enumerate(band_keys(data, offsets, mode, BANDS)):
                spill.append(f"keys-{band}", keys)

        valid = spill.read("valid", np.bool_)
        n = len(valid)
        firsts, distinct = _first_equal(spill.read("digests", np.uint64).reshape(-1, 2), valid)
        wanted = np.zeros(n, np.bool_)
        for band in range(BANDS[0]):
            of_band = runs(spill.read(f"keys-{band}", np.uint64)[distinct], distinct)
            wanted[of_band.rows] = True
            spill.append(f"rows-{band}", of_band.rows)
            spill.append(f"starts-{band}", of_band.starts)

        # From here on candidates are numbered among themselves: candidate i is row `candidates[i]`.
        data, offsets = spill.keep_texts(batch[column] for batch in chosen(source, [column], wanted))
        candidates = np.flatnonzero(wanted).astype(np.uint32)
        number = np.cumsum(wanted, dtype=np.uint32) - np.uint32(1)
        parents, links = singletons(len(candidates)), no_links(len(candidates))
        for band in range(BANDS[0]):
            of_band = Runs(number[spill.read(f"rows-{band}", np.uint32)], spill.read(f"starts-{band}", np.int64))
            link(data, offsets, of_band, threshold, parents, links)
        components = singletons(n)
        components[candidates] = candidates[roots(parents)]

        def order(rows: Words) -> pl.DataFrame:
            columns = {name for name in (earliest, ids) if name is not None}
            read = {}
            if columns and len(rows):
                mask = np.zeros(n, np.bool_)
                mask[rows] = True
                table = pa.Table.from_batches(chosen(source, sorted(columns), mask))
                read = {name: pl.Series(table[name]) for name in columns}
            return _order(
                rows, pl.Series(spill.read("lengths", np.uint32)[rows]), read.get(earliest or ""), read.get(ids or "")
            )

        def similarity(left: Words, right: Words) -> Shares:
            return similarities(data, offsets, number[left], number[right], links)

        return _clusters(components[firsts], firsts, order, similarity)


def require_arguments(
    n: int, threshold: float, earliest: pl.Series | None = None, ids: pl.Series | None = None
) -> None:
    """Raises RequestError for an impossible threshold, or for a series of other than n values."""
    if not 0 < threshold <= 1:
        raise RequestError(
            f"{threshold} is no threshold of similarity", hint="choose one above 0, up to 1: 0.8 is usual"
        )
    for series in (earliest, ids):
        if series is not None and len(series) != n:
            raise RequestError(f"{n} texts cannot be ordered by a series of {len(series)}", hint="give one of each")


def _new_seeds() -> tuple[int, int]:
    """Drawn again for each search: nobody can write two texts that collide."""
    return secrets.randbits(64), secrets.randbits(64)


def _digests(texts: pl.Series, seeds: tuple[int, int]) -> Keys:
    """Digests of 128 bits, uint64 [n, 2]; those of nulls mean nothing."""
    return np.stack([texts.hash(seed).to_numpy() for seed in seeds], axis=1)


def _first_equal(digests: Keys, valid: NDArray[np.bool_]) -> tuple[Words, Words]:
    """Of each text the first row with the same one (uint32 [n]; a null equals nothing), and the first rows alone."""
    rows = np.arange(len(valid), dtype=np.uint32)
    frame = pl.DataFrame({"one": digests[:, 0], "other": digests[:, 1], "row": rows})
    first = frame.select(pl.col("row").first().over("one", "other")).to_series().to_numpy()
    firsts = np.where(valid, first, rows)
    return firsts, rows[valid & (firsts == rows)]


def _order(rows: Words, lengths: pl.Series, earliest: pl.Series | None, ids: pl.Series | None) -> pl.DataFrame:
    earliest = pl.Series([None]).new_from_index(0, len(rows)) if earliest is None else earliest
    return pl.DataFrame({"earliest": earliest, "length": lengths, "id": pl.Series(rows) if ids is None else ids})


def _clusters(components: Words, firsts: Words, order: _Order, similarity: _Similarity) -> pl.DataFrame:
    """The clusters of n rows, as `find_duplicates` returns them, of a row that stands for each row's component."""
    n = len(components)
    sizes = np.bincount(components, minlength=n).astype(np.uint32)[components]
    crowded = np.flatnonzero(sizes > 1).astype(np.uint32)
    survivors = np.arange(n, dtype=np.uint32)
    survivors[crowded] = _survivors(components[crowded], crowded, order(crowded))

    similarities = np.ones(n)
    differing = crowded[firsts[survivors[crowded]] != firsts[crowded]]
    texts, place = np.unique(firsts[differing], return_inverse=True)
    if len(texts):
        survivor_text = np.empty(n, np.uint32)
        survivor_text[firsts[differing]] = firsts[survivors[differing]]
        pairs = np.argsort(survivor_text[texts], kind="stable")  # the survivor's text is read once for its cluster
        measured = np.empty(len(texts))
        measured[pairs] = similarity(survivor_text[texts[pairs]], texts[pairs])
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
    return (
        order.with_columns(component=components, row=rows)
        .sort("earliest", "length", "id", "row", descending=[False, True, False, False], nulls_last=True)
        .with_columns(survivor=pl.col("row").first().over("component"))
        .sort("row")["survivor"]
        .to_numpy()
    )
