"""A column of texts as Arrow buffers for a kernel, and back: the bytes of all texts, and where each begins."""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from pipelines.core.kernels import Bytes, Places, kernel, part
from pipelines.errors import RequestError

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
    series: pl.Series = column(texts)
    return series.to_arrow(compat_level=pl.CompatLevel.oldest())


def _valid(texts: pa.Array) -> pa.LargeStringArray:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    binaries = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    if not any(kind(texts.type) for kind in (*kinds, *binaries)):
        raise RequestError(f"a column of texts cannot be {texts.type}", hint="cast it to string first")
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
        raise RequestError("this Arrow column is damaged", hint="write it again from its source") from error
    repaired: pa.LargeStringArray = column(raw.to_pylist()).to_arrow(compat_level=pl.CompatLevel.oldest())
    return repaired


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to: numba compiles a kernel for such arrays and for others apart."""
    view = array.view()
    view.flags.writeable = False
    return view


def strings(data: Bytes, offsets: Places) -> pl.Series:
    """The column of strings that lies in these buffers; the bytes must be UTF-8."""
    array = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))
    return pl.Series(pl.from_arrow(array), dtype=pl.String)


def _emit_four_bytes(_context: Any, data: Any, _at: Any) -> Any:
    """`data[at : at + 4]` as a big-endian number (uint32); they must all be there. One load instead of four."""

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, given[0])
        place = builder.bitcast(builder.gep(array.data, [given[1]]), ir.IntType(32).as_pointer())
        return builder.bswap(builder.load(place, align=1))

    return types.uint32(data, types.int64), emit


four_bytes: Any = intrinsic(_emit_four_bytes)


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


@part
def decoded_of_three(data: Bytes, at: int, readable: int) -> tuple[int, int]:
    """`decoded`, where most characters have three bytes; from before `readable` on four bytes can be read."""
    if at < readable:
        four = four_bytes(data, at)
        if 0xE0000000 <= four < 0xF0000000:
            return int(four >> 12 & 0xF000 | four >> 10 & 0xFC0 | four >> 8 & 0x3F), at + 3
    return decoded(data, at)


def column(texts: pl.Series | Iterable[str | bytes | None]) -> pl.Series:
    """Texts as a column of strings, whatever they came as.

    What is no Unicode (a lone surrogate, invalid UTF-8) becomes U+FFFD, so that the row still counts; a null stays one.

    Raises RequestError for anything that is no text.
    """
    if isinstance(texts, (str, bytes)):
        raise RequestError("a text is no column of texts", hint="give a list, even of a single text")
    if isinstance(texts, pl.Series) and texts.dtype in (pl.String, pl.Null):
        return texts.cast(pl.String)
    return pl.Series([_unicode(place, one) for place, one in enumerate(texts)], dtype=pl.String)


def _unicode(place: int, one: str | bytes | None) -> str | None:
    if one is None:
        return None
    if isinstance(one, bytes):
        return one.decode("utf-8", "replace")
    if isinstance(one, str):
        # Two surrogates that belong together become their character; one alone is no character.
        return one.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    raise RequestError(
        f"a text must be a string, not {type(one).__name__}", where=f"text {place}", hint="convert the column first"
    )
