"""A long column slice by slice, and single rows of it exchanged."""

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

Rows = NDArray[np.intp]

# Rows and bytes of one slice: small enough to stay in the cache, large enough not to be felt.
_ROWS, _BYTES = 32_768, 32 << 20


def with_rows(texts: pl.Series, rows: pl.Series | Rows, made: pl.Series) -> pl.Series:
    """`texts` with the rows at the places `rows` exchanged for `made`; the column given stays as it is."""
    return texts.clone().scatter(rows, made) if len(rows) else texts


def in_slices(work: Callable[[pl.Series], pl.Series], texts: pl.Series) -> pl.Series:
    """`work` over `texts`, slice by slice, so that what it holds meanwhile stays small; the rows keep their order.

    No threads here: this runs inside expressions, on a thread of polars' own, and one that waits for others of them to
    come free may wait for ever.
    """
    return pl.concat([work(one) for one in _slices(texts)])


def _slices(texts: pl.Series) -> Iterator[pl.Series]:
    if len(texts) <= _ROWS and texts.estimated_size() <= _BYTES:
        yield texts
        return
    sizes = texts.str.len_bytes().fill_null(0).to_numpy()
    ends = np.cumsum(sizes, dtype=np.int64)
    begin = 0
    while begin < len(texts):
        within = int(np.searchsorted(ends, ends[begin] - sizes[begin] + _BYTES, side="right"))
        end = min(max(within, begin + 1), begin + _ROWS)
        yield texts.slice(begin, end - begin)
        begin = end
