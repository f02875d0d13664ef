"""Columns of texts become bytes and offsets that no kernel can read beyond, whatever Arrow hands over."""

from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.core.arrow import buffers
from pipelines.errors import RequestError


def texts_of(column: object) -> list[str]:
    data, offsets = buffers(column)
    assert data.dtype == np.uint8
    assert offsets.dtype == np.int64
    return [data[start:stop].tobytes().decode() for start, stop in pairwise(offsets)]


@given(st.lists(st.one_of(st.none(), st.text()), max_size=6), st.integers(0, 3))
def test_every_form_of_a_column_gives_its_texts(texts: list[str | None], start: int) -> None:
    expected = [text or "" for text in texts[start:]]
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()):
        array = pa.array([text and text.encode() for text in texts], pa.binary()).cast(kind)
        assert texts_of(array[start:]) == expected
        assert texts_of(pa.chunked_array([array[:start], array[start:]], kind)[start:]) == expected
    series = pl.Series(texts, dtype=pl.String)
    for form in (texts[start:], series[start:], pl.concat([series[:1], series[1:]], rechunk=False)[start:]):
        assert texts_of(form) == expected


def test_a_column_of_arrow_is_not_copied() -> None:
    array = pa.array(["睡不着", "怎么办"], pa.large_string())
    data, offsets = buffers(array[1:])
    assert data.ctypes.data == array.buffers()[2].address
    assert offsets.tolist() == [9, 18]


def test_nothing_is_an_empty_column_and_what_hides_behind_a_null_is_not_read() -> None:
    for nothing in ([], pl.Series([], dtype=pl.String), pa.array([], pa.string()), pa.chunked_array([], pa.string())):
        assert texts_of(nothing) == []
    assert texts_of(pl.Series([None, None])) == texts_of(pa.nulls(2)) == ["", ""]
    offsets, data = pa.py_buffer(np.array([0, 3, 6], np.int64)), pa.py_buffer("我们".encode())
    array = pa.LargeStringArray.from_buffers(2, offsets, data, pa.py_buffer(b"\x02"))
    assert array.to_pylist() == [None, "们"]
    assert texts_of(array) == ["", "们"]


@pytest.mark.parametrize("raw", [b"\xe6", b"\xf0\x9f\x98", b"ab\xff", b"\x80\x80", b"\xed\xa0\x80", b"\xc0\xaf"])
def test_invalid_utf8_is_repaired_before_a_kernel_sees_it(raw: bytes) -> None:
    """A leading byte at the very end promises more bytes than the buffer has."""
    offsets = np.array([0, 3, 3 + len(raw)], np.int64)
    array = pa.LargeStringArray.from_buffers(2, pa.py_buffer(offsets), pa.py_buffer("我".encode() + raw))
    expected = ["我", raw.decode("utf-8", "replace")]
    assert texts_of(array) == expected
    assert texts_of(pa.chunked_array([array[:1], array[1:]])) == expected
    assert texts_of([one if isinstance(one, bytes) else one.encode() for one in ("我", raw)]) == expected


def test_broken_offsets_and_what_is_no_text_are_refused() -> None:
    for offsets in ([0, 9, 3], [0, 5, 3], [0, -3, 3]):
        array = pa.LargeStringArray.from_buffers(2, pa.py_buffer(np.array(offsets, np.int64)), pa.py_buffer(b"abcdef"))
        with pytest.raises(RequestError, match="damaged"):
            buffers(array)
    for column in (pa.array([1, 2]), pa.array([["我"]]), pl.Series([1.5]), [object()]):
        with pytest.raises(RequestError):
            buffers(column)
