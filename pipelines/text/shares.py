"""A frame worked on share by share, by as many threads as polars has."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import polars as pl

# Bytes. A call costs some tenths of a second whatever it is given, mostly regexes compiled again; and what it is given
# it holds several times over.
LEAST, MOST = 8 << 20, 32 << 20

Work = Callable[[pl.DataFrame], pl.DataFrame]


def in_shares(work: Work, frame: pl.DataFrame, *, least: int = LEAST, most: int = MOST) -> pl.DataFrame:
    """What `work` makes of `frame`, where it looks at one row at a time.

    Not to be called inside an expression: a thread of polars' own that waits for others of them may wait for ever.

    Args:
        work: Gets some rows that follow one another, and returns as many rows as it likes.
        frame: Any frame.
        least: Bytes of a frame that is worth sharing.
        most: Bytes of a share, roughly.

    Returns:
        The results below each other, in the order of the rows; an error is the first share's that has one.
    """
    size, threads = frame.estimated_size(), pl.thread_pool_size()
    if size < least or len(frame) < threads:
        return work(frame)
    shares = threads * math.ceil(size / (threads * most))
    rows = -(-len(frame) // shares)
    with ThreadPoolExecutor(threads) as pool:
        return pl.concat(pool.map(work, frame.iter_slices(rows)))
