"""A frame worked on share by share, by as many threads as polars has."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import polars as pl

BYTES = 8 << 20  # of one share: few enough for every thread to have several, many enough for what a call costs

Work = Callable[[pl.DataFrame], pl.DataFrame]


def in_shares(work: Work, frame: pl.DataFrame, size: int = BYTES) -> pl.DataFrame:
    """What `work` makes of `frame`, where it looks at one row at a time.

    Not to be called inside an expression: a thread of polars' own that waits for others of them may wait for ever.

    Args:
        work: Gets some rows that follow one another, and returns as many rows as it likes.
        frame: Any frame.
        size: How many bytes a share has, roughly.

    Returns:
        The results below each other, in the order of the rows; an error is the first share's that has one.
    """
    shares = max(1, min(len(frame), round(frame.estimated_size() / size)))
    rows = -(-len(frame) // shares)
    if shares == 1:
        return work(frame)
    with ThreadPoolExecutor(pl.thread_pool_size()) as threads:
        return pl.concat(threads.map(work, frame.iter_slices(rows)))
