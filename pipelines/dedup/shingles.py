"""Texts as kernels see them: bytes and offsets, characters, and shingles of five characters.

A text of n characters (Unicode code points) has n - 4 shingles; one of 1 to 4 characters is a single shingle, the
whole text; an empty one has none. A character is handled as its UTF-8 bytes, read as one big-endian number: distinct
for distinct characters, and what SHA-1 wants to see.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from pipelines import text
from pipelines.dedup.kernels import Bytes, Places, Words, part
from pipelines.errors import RequestError

SIZE = 5  # characters of a shingle
BLOCK = 512  # shingles that a kernel holds at a time: a long text costs no more memory than a short one
LANES = 16  # the arrays of a block are worked on in steps of this many
ROOM = BLOCK + LANES  # length of an array that holds a block, padded to full steps

Texts: TypeAlias = pl.Series | pa.Array | pa.ChunkedArray | Iterable[str | bytes | None]


def buffers(texts: Texts) -> tuple[Bytes, Places]:
    """The UTF-8 bytes of all texts, and where each begins: text i is `data[offsets[i]:offsets[i + 1]]`.

    A null is an empty text here. What is no UTF-8 becomes U+FFFD, so that no kernel ever reads beyond a text. Arrow
    columns of valid texts are not copied, unless they come in several chunks or as views.

    Returns:
        data: uint8 [any length], read-only.
        offsets: int64 [n + 1], read-only, rising.

    Raises:
        RequestError: for what is no column of texts, or an Arrow column whose offsets are broken.
    """
    return buffers_of(arrow(texts))


def buffers_of(column: pa.LargeStringArray) -> tuple[Bytes, Places]:
    """The buffers of what `arrow` gave; see `buffers`."""
    if column.null_count:
        column = column.fill_null("")  # the bytes behind a null may be anything
    _, offsets, data = column.buffers()
    if not len(column):
        return read_only(np.zeros(0, np.uint8)), read_only(np.zeros(1, np.int64))
    bounds = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return read_only(np.frombuffer(data or b"", np.uint8)), read_only(bounds)


def arrow(texts: Texts) -> pa.LargeStringArray:
    """Texts as one Arrow array of valid UTF-8; see `buffers`."""
    if isinstance(texts, pa.ChunkedArray):
        return pa.concat_arrays([_valid(chunk) for chunk in texts.chunks] or [pa.array([], pa.large_string())])
    if isinstance(texts, pa.Array):
        return _valid(texts)
    column: pl.Series = text.column(texts)
    return column.to_arrow(compat_level=pl.CompatLevel.oldest())


def _valid(texts: pa.Array) -> pa.LargeStringArray:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    binaries = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    if not any(kind(texts.type) for kind in (*kinds, *binaries)):
        raise RequestError(f"a column of texts cannot be {texts.type}", remedy="cast it to string first")
    try:
        texts.validate(full=True)
        return texts.cast(pa.large_string())
    except pa.ArrowInvalid:
        return _repaired(texts)


def _repaired(texts: pa.Array) -> pa.LargeStringArray:
    """The texts with U+FFFD for what is no UTF-8; raises RequestError for broken offsets, which no one can mend."""
    try:
        raw = texts.cast(pa.large_binary())
        raw.validate(full=True)
    except pa.ArrowInvalid as error:
        raise RequestError("this Arrow column is damaged", remedy="write it anew from its source") from error
    repaired: pa.LargeStringArray = text.column(raw.to_pylist()).to_arrow(compat_level=pl.CompatLevel.oldest())
    return repaired


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to: numba compiles a kernel for such arrays and for others apart."""
    view = array.view()
    view.flags.writeable = False
    return view


@part
def read_characters(
    data: Bytes, start: int, stop: int, characters: Words, sizes: Words, held: int, room: int
) -> tuple[int, int]:
    """Characters of `data[start:stop]`, valid UTF-8, until the text ends or `room` of them are held.

    Fills `characters` (the bytes as a big-endian number) and `sizes` (bytes, 1 … 4) from index `held` on.

    Returns where the reading ended, and how many characters are held now.
    """
    while start < stop and held < room:
        lead = np.uint32(data[start])
        if lead < 0x80:
            size = 1
            character = lead
        elif lead < 0xE0:
            size = 2
            character = lead << np.uint32(8) | np.uint32(data[start + 1])
        elif lead < 0xF0:
            size = 3
            character = lead << np.uint32(16) | np.uint32(data[start + 1]) << np.uint32(8) | np.uint32(data[start + 2])
        else:
            size = 4
            character = (
                lead << np.uint32(24)
                | np.uint32(data[start + 1]) << np.uint32(16)
                | np.uint32(data[start + 2]) << np.uint32(8)
                | np.uint32(data[start + 3])
            )
        characters[held] = character
        sizes[held] = size
        start += size
        held += 1
    return start, held
