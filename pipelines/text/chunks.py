"""Long frames and columns in chunks: a frame by several threads, a column slice by slice, single rows replaced."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
from numpy.typing import NDArray

# Bytes. A call costs some tenths of a second however small its frame is, for regexes are compiled again, and it holds
# its frame several times over.
LEAST, MOST = 8 << 20, 32 << 20

Work = Callable[[pl.DataFrame], pl.DataFrame]

Rows = NDArray[np.intp]

# Rows and bytes of one slice: small enough to stay in the cache, large enough not to be felt.
_ROWS, _BYTES = 32_768, 32 << 20


def in_shares(work: Work, frame: pl.DataFrame, *, least: int = LEAST, most: int = MOST) -> pl.DataFrame:
    """What `work` makes of `frame`, where it looks at one row at a time.

    Not to be called inside an expression: a thread of polars' own that waits for others of them may wait for ever.

    Args:
        work: Gets some rows that follow one another, and returns as many rows as it likes.
        least: Bytes of a frame that is worth sharing.
        most: Bytes of a share, roughly.

    Returns the results in the order of the rows; an error is the first share's that has one.
    """
    size, threads = frame.estimated_size(), pl.thread_pool_size()
    if size < least or len(frame) < threads:
        return work(frame)
    shares = threads * math.ceil(size / (threads * most))
    rows = -(-len(frame) // shares)
    with ThreadPoolExecutor(threads) as pool:
        return pl.concat(pool.map(work, frame.iter_slices(rows)))


def with_rows(texts: pl.Series, rows: pl.Series | Rows, values: pl.Series) -> pl.Series:
    """`texts` with the rows at the places `rows` replaced by `values`; the column itself stays as it is."""
    return texts.clone().scatter(rows, values) if len(rows) else texts


def in_slices(work: Callable[[pl.Series], pl.Series], texts: pl.Series) -> pl.Series:
    """`work` over `texts`, slice by slice, so that what it holds meanwhile stays small; the rows keep their order.

    No threads: inside an expression they may wait for ever.
    """
    if len(texts) <= _ROWS and texts.estimated_size() <= _BYTES:
        return work(texts)
    sizes = texts.str.len_bytes().fill_null(0).to_numpy()
    ends = np.cumsum(sizes, dtype=np.int64)
    made, begin = [], 0
    while begin < len(texts):
        within = int(np.searchsorted(ends, ends[begin] - sizes[begin] + _BYTES, side="right"))
        end = min(max(within, begin + 1), begin + _ROWS)
        if len(texts) - end < _ROWS // 2 and ends[-1] - ends[end - 1] < _BYTES // 2:
            end = len(texts)  # a short slice costs nearly what a long one does
        made.append(work(texts.slice(begin, end - begin)))
        begin = end
    return pl.concat(made)
