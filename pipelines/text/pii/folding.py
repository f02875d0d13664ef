"""Texts as the finders read them, and the way back to the bytes as they were written.

Folding puts aside what hides a number or a word from a pattern: full-width, circled, parenthesised and keycap digits,
ornate letters, invisible characters between digits, Traditional characters. Each character becomes one character or
none, so that a span of the folded text is a span of the text. Chinese digits stay: 一 is far more often a word. A
circled digit with no other beside it counts what follows (①13812345678②139…) and stays as well.
"""

import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from pipelines.text.pii.spans import CLOSE, OPEN, SPANS
from pipelines.text.script import each_alone

Codes = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]

_GONE = 0xFFFFFFFF
# Planes 0 and 1 hold every letter and digit that has a plain form; plane 14 is tags and variation selectors.
_FOLDED_CODES = (*range(0x3000), *range(0x3000, 0x3400), *range(0xF900, 0x10000), *range(0x1D400, 0x1D800),
                 *range(0x1F100, 0x1F200), *range(0x1FBF0, 0x1FBFA))  # fmt: skip
# Punctuation with an ASCII form that e-mail addresses, links and mentions are made of. ，：！？ stay Chinese.
_PUNCTUATION = dict(zip("＠．＿－＋／＃＊＆＝～﹫﹒﹣﹢", "@._-+/#*&=~@.-+", strict=True))
# The sign that makes a keycap of a digit, ① and ⓪: what a keycap becomes that stands alone.
_KEYCAP, _ONE, _ZERO = 0x20E3, 0x2460, 0x24EA
_BESIDE = 2  # characters: 1③8①2③4 is one number

# Letters of other alphabets that stand in for V, X, O, Q and 3.
_LOOKALIKES = dict(zip("ѵνᏙХхΧχΟοОоԛЗз", "vvvXxXxOoOoq33", strict=True))


class Folded(NamedTuple):
    """Folded texts, one for each that came in (no null: an empty text instead), and the way back."""

    texts: pl.Series
    rows: np.ndarray  # those that are not as they were written
    folded_bases: np.ndarray
    written_bases: np.ndarray
    folded_starts: np.ndarray
    written_starts: np.ndarray
    written_ends: np.ndarray

    def back(self, spans: pl.DataFrame) -> pl.DataFrame:
        """Spans of the folded texts as spans of the texts as written: a frame of SPANS."""
        if not len(self.rows) or spans.is_empty():
            return spans
        row = spans["row"].to_numpy().astype(np.int64)
        place = np.searchsorted(self.rows, row)
        here = np.flatnonzero(self.rows[np.minimum(place, len(self.rows) - 1)] == row)
        place = place[here]
        taken = {}
        for side in ("start", "end"):
            at = spans[side].to_numpy().copy()
            character = np.searchsorted(self.folded_starts, at[here] + self.folded_bases[place])
            # No further than the row: what was put aside at the start of the next is not its own.
            at[here] = np.minimum(self.written_starts[character], self.written_ends[place]) - self.written_bases[place]
            taken[side] = at
        return spans.with_columns(start=pl.Series(taken["start"]), end=pl.Series(taken["end"])).cast(SPANS)


def fold(texts: pl.Series) -> Folded:
    """`texts` as the finders read them.

    Most rows need nothing and are passed on as they are; the others are folded together in one array of code points.
    """
    texts = texts.fill_null("")
    rows = texts.str.contains(_changing()).arg_true()
    if rows.is_empty():
        return Folded(texts, *([np.empty(0, np.int64)] * 6))
    written = texts.gather(rows)
    codes = np.frombuffer("".join(written.to_list()).encode("utf-32-le"), np.uint32)
    table = _table()
    folded = table[codes]
    kept = np.flatnonzero(folded != _GONE)
    folded = folded[kept]
    row_chars = np.concatenate([[0], written.str.len_chars().cast(pl.Int64).to_numpy().cumsum()])
    row_kept = np.searchsorted(kept, row_chars)
    _leave_numerals(codes, kept, row_kept, folded)
    # Where each kept character starts, in the bytes of the written and of the folded rows laid end to end.
    written_starts = _starts(codes)
    folded_starts = _starts(folded)
    data = folded.tobytes().decode("utf-32-le").encode()
    offsets = folded_starts[row_kept]
    array = pa.LargeStringArray.from_buffers(len(rows), pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(data))
    series = pl.Series(texts.name, array)
    return Folded(
        texts.scatter(rows, series) if len(rows) < len(texts) else series,
        rows.to_numpy().astype(np.int64),
        folded_bases=offsets[:-1],
        written_bases=written_starts[row_chars[:-1]],
        folded_starts=folded_starts,
        # What was put aside after a character belongs to it: the sign that makes a keycap of a digit.
        written_starts=np.append(written_starts[kept], written_starts[-1]),
        written_ends=written_starts[row_chars[1:]],
    )


def _starts(codes: np.ndarray) -> np.ndarray:
    """Where each code point starts in UTF-8, and at last where the text ends."""
    sizes = 1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000)
    return np.concatenate([[0], sizes.cumsum()])


def _leave_numerals(codes: Codes, kept: Places, row_kept: Places, folded: Codes) -> None:
    """Makes marks of a list again of the enclosed digits in `folded` that have no other beside them."""
    written = codes[kept]
    keycaps = np.flatnonzero(codes == _KEYCAP)
    digits = np.searchsorted(kept, keycaps) - 1
    keycaps, digits = keycaps[digits >= 0], digits[digits >= 0]  # a frame may stand before all that is kept
    keycap = (keycaps - kept[digits] <= _BESIDE) & (written[digits] - 48 < 10)  # unsigned
    enclosed = np.union1d(np.flatnonzero(_enclosed()[written]), digits[keycap])
    if not len(enclosed):
        return
    row = np.searchsorted(row_kept, enclosed, side="right")
    near = (np.diff(enclosed) <= _BESIDE) & (np.diff(row) == 0)
    alone = enclosed[~(np.append(near, False) | np.append(False, near))]
    digit = folded[alone] - 48
    mark = np.where(digit == 0, _ZERO, _ONE - 1 + digit)
    folded[alone] = np.where(written[alone] < 0x80, mark, written[alone])


@cache
def _enclosed() -> npt.NDArray[np.bool_]:
    """Whether each code point is a digit in a circle, in brackets or with a full stop."""
    enclosed = np.zeros(0x110000, np.bool_)
    for code in np.flatnonzero(_table() != np.arange(len(_table()))):
        form = unicodedata.decomposition(chr(code))
        small = form.startswith(("<super>", "<sub>"))
        enclosed[code] = unicodedata.category(chr(code)) == "No" and not small
    return enclosed


@cache
def _table() -> np.ndarray:
    """What each code point becomes, as uint32 by code point."""
    table = np.arange(0x110000, dtype=np.uint32)
    for code in _FOLDED_CODES:
        table[code] = _folded(chr(code))
    table[0xE0000:0xE1000] = _GONE
    simplified = {one: made for one, made in each_alone("t2s").items() if one >= "\u4e00"}
    for written, meant in (_PUNCTUATION | _LOOKALIKES | simplified).items():
        table[ord(written)] = ord(meant)
    table[[ord(OPEN), ord(CLOSE)]] = 0xFFFD
    return table


def _folded(character: str) -> int:
    if character in _IGNORABLE or (unicodedata.category(character) in ("Cc", "Cf") and character not in "\t\n\r"):
        return _GONE
    if character.isascii():
        return ord(character)
    digit = unicodedata.digit(character, None)
    if digit is not None:
        return ord(str(digit))
    plain = unicodedata.normalize("NFKC", character).strip("()")
    if len(plain) == 1 and ((plain.isascii() and plain.isalnum()) or plain in " 一二三四五六七八九"):
        return ord(plain)
    return ord(character)


# Fillers, joiners, variation selectors, the keycap, the blank of Braille.
_IGNORABLE = frozenset([*map(chr, range(0xFE00, 0xFE10)), *"\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u20e3\u2800"])


@cache
def _changing() -> str:
    """A class of every character that folding changes, as ranges."""
    table = _table()
    codes = np.flatnonzero(table != np.arange(len(table)))
    breaks = np.flatnonzero(np.diff(codes) != 1)
    firsts, lasts = codes[np.append(0, breaks + 1)], codes[np.append(breaks, len(codes) - 1)]
    ranges = (rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in zip(firsts, lasts, strict=True))
    return f"[{''.join(ranges)}]"
