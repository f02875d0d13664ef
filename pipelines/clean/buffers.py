"""A column of strings as Arrow buffers for a numba kernel, and back; a long column slice by slice."""

from collections.abc import Callable, Iterator
from typing import TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]

F = TypeVar("F", bound=Callable[..., object])

# Rows and bytes of one slice: small enough to stay in the cache, large enough not to be felt.
_ROWS, _BYTES = 32_768, 32 << 20


def kernel(function: F) -> F:
    """`function`, compiled by numba when first called, kept beside the source, free of the interpreter's lock."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


@kernel
def decoded(data: Bytes, at: int) -> tuple[int, int]:
    """The code point of valid UTF-8 that begins at `at`, and where the next one does."""
    lead = int(data[at])
    if lead < 0x80:
        return lead, at + 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | data[at + 1] & 0x3F, at + 2
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | (data[at + 1] & 0x3F) << 6 | data[at + 2] & 0x3F, at + 3
    high = (lead & 7) << 18 | (data[at + 1] & 0x3F) << 12
    return high | (data[at + 2] & 0x3F) << 6 | data[at + 3] & 0x3F, at + 4


def buffers(texts: pl.Series) -> tuple[Bytes, Offsets]:
    """The UTF-8 of `texts` and where each begins (n + 1 offsets); a null is an empty string."""
    array = texts.fill_null("").rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_string())
    _, offsets, data = array.buffers()
    begins = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data or b"", np.uint8), begins


def strings(data: Bytes, offsets: Offsets) -> pl.Series:
    """The column of strings that lies in these buffers; the bytes must be UTF-8."""
    array = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))
    return pl.Series(pl.from_arrow(array), dtype=pl.String)


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
