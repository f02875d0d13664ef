"""What several stages do to a string, or to a column of them: a key to compare it by, its length, its Chinese share."""

import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.core.arrow import buffers, decoded, strings
from pipelines.core.kernels import Bytes, Places, Words, kernel
from pipelines.core.overlap import Points, points
from pipelines.text.characters import CODES, Classes, counted, every_character

# What a string's key is without: width and case; white space as well; all but letters and digits; script.
Level = Literal["form", "space", "marks", "script"]

# White space, control and format characters (zero-width, bidirectional, byte-order mark, soft hyphen), what Unicode
# calls ignorable (fillers, variation selectors), and the blank of Braille that blank names are made of.
_INVISIBLE = r"[\p{White_Space}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]"

_VISIBLE = ("han", "letter", "sign")
_CLASSES = (*_VISIBLE, "hidden_letter")  # the fillers of Hangul are letters that nobody sees


def key(text: pl.Expr) -> pl.Expr:
    """A text's key: NFKC, lower case, without white space and invisible characters.

    Two texts with the same key are the same text to a reader. For comparison only: NFKC turns ，？！ into ASCII.
    """
    return text.map_batches(_keys, return_dtype=pl.String, is_elementwise=True)


def normalised(text: pl.Expr) -> pl.Expr:
    """What `key` is, by definition; it is computed once for each character that is the same beside any other."""
    return _plain(text).str.normalize("NFKC")  # what stood apart may now compose


def _plain(text: pl.Expr) -> pl.Expr:
    return text.str.normalize("NFKC").str.to_lowercase().str.replace_all(_INVISIBLE, "")


def _keys(texts: pl.Series) -> pl.Series:
    data, offsets = buffers(texts)
    made, ends = np.empty(offsets[-1] - offsets[0], np.uint8), np.zeros(len(offsets), np.int64)
    whole = pl.Series(_write_keys(data, offsets, _key_of_each(), made, ends))
    rest = pl.select(normalised(pl.lit(texts.set(whole, None)))).to_series()
    return rest.zip_with(~whole, strings(made, ends)).set(texts.is_null(), None).alias(texts.name)


_MIXED = np.uint32(0xFFFFFFFF)  # no UTF-8 has such a byte
_PICTURES = 0x1F000, 0x1FB00


@kernel
def _write_keys(data: Bytes, offsets: Places, key_of_each: Words, made: Bytes, ends: Places) -> npt.NDArray[np.bool_]:
    """Writes the keys one after the other and where each ends; returns of which texts. That of any other is empty."""
    whole = np.ones(offsets.shape[0] - 1, np.bool_)
    end = 0
    for row in range(offsets.shape[0] - 1):
        at = offsets[row]
        while at < offsets[row + 1]:
            code, at = decoded(data, at)
            key = key_of_each[code] if code < key_of_each.shape[0] else _MIXED
            if key == _MIXED:
                whole[row], end = False, ends[row]
                break
            while key:
                made[end] = key & np.uint32(0xFF)
                key >>= np.uint32(8)
                end += 1
        ends[row + 1] = end
    return whole


@cache
def _key_of_each() -> Words:
    """Of each code point the UTF-8 of its key, its first byte the lowest; _MIXED where what stands beside the character
    may change its key, or where this is the longer one.

    Of the characters of the basic plane and the pictures above it only marks and the letters of Hangul compose with
    what is before them, or change places, and only a Greek sigma has two lower cases.
    """
    one, key = pl.col("one"), pl.col("key")
    mixing = r"[[\p{M}\x{1100}-\x{11FF}Σ]--[\x{FE00}-\x{FE0F}]]"
    each = every_character().head(_PICTURES[1]).to_frame("one").with_row_index("code").with_columns(key=normalised(one))
    steps = (one, one.str.normalize("NFKC"), _plain(one), key)
    mixes = pl.any_horizontal(step.str.contains(mixing) for step in steps)
    longer = key.str.len_bytes() > one.str.len_bytes()
    mixed = each.select(mixes | longer | pl.col("code").is_between(0x10000, _PICTURES[0] - 1)).to_series()
    data, offsets = buffers(each["key"])
    packed = np.zeros(each.height, np.uint32)
    for place in range(4):
        at = offsets[:-1] + place
        packed |= np.where(at < offsets[1:], data[np.minimum(at, len(data) - 1)], 0).astype(np.uint32) << 8 * place
    return np.where(mixed, _MIXED, packed)


def key_of(text: str, without: Level) -> str:
    """A single string's key, for comparison only; each level leaves out what those before it do, and more."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    if without == "form":
        return plain
    if without == "space":
        return "".join(plain.split())
    letters = "".join(filter(str.isalnum, plain))
    return letters if without == "marks" else letters.translate(_to_simplified())


def keys_of(texts: Sequence[str]) -> list[str]:
    """`key_of(text, "script")` of each text: what becomes of a character is looked up once for all of them."""
    joined = points("".join(texts))
    keys = _of_characters(joined)
    kept = keys != _DROPPED
    ends = np.cumsum([0, *map(len, texts)])
    places = np.append(0, np.cumsum(kept))[ends].tolist()
    whole = np.where(keys == _IN_CONTEXT, 0, keys)[kept].astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    made = [whole[start:end] for start, end in pairwise(places)]
    for number in np.unique(np.searchsorted(ends, np.flatnonzero(keys == _IN_CONTEXT), "right") - 1).tolist():
        made[number] = key_of(texts[number], "script")
    return made


_DROPPED, _IN_CONTEXT, _UNSEEN = 0, CODES, CODES + 1


def _of_characters(joined: Points) -> Points:
    """What a key has in the place of each character: one, or _DROPPED, or _IN_CONTEXT where it becomes several, or may
    join the one before it.
    """
    table, seen = _characters_seen(), np.zeros(CODES, dtype=bool)
    codes = np.minimum(joined, CODES - 1)
    seen[codes] = True
    for code in np.flatnonzero(seen & (table == _UNSEEN)).tolist():
        table[code] = _key_character(code)
    return np.where(joined < CODES, table[codes], _IN_CONTEXT).astype(np.uint32)


@cache
def _characters_seen() -> Points:
    return np.full(CODES, _UNSEEN, dtype=np.uint32)


def _key_character(code: int) -> int:
    one = chr(code)
    plain, key = unicodedata.normalize("NFKC", one), key_of(one, "script")
    if len(key) > 1 or any(map(_may_join, plain)):
        return _IN_CONTEXT
    return ord(key) if key else _DROPPED


def _may_join(character: str) -> bool:
    """Whether NFKC may make one character of this and the one before: marks, and the parts of a Korean syllable."""
    return unicodedata.category(character).startswith("M") or 0x1100 <= ord(character) <= 0x11FF


@cache
def _to_simplified() -> dict[int, str]:
    from pipelines.text.script import traditional_only

    return str.maketrans(traditional_only())


def n_chars(text: pl.Expr) -> pl.Expr:
    """Characters of `text`, white space and invisible ones not counted (Int64); null for a null."""
    return text.map_batches(_n_chars, return_dtype=pl.Int64, is_elementwise=True)


def han_ratio(text: pl.Expr) -> pl.Expr:
    """Share of Chinese characters among the letters and digits of `text`, 0 … 1; 0 where there are none.

    Punctuation is left out, so that "……" or a row of emoji neither raises nor lowers the share.
    """
    return text.map_batches(_han_ratio, return_dtype=pl.Float64, is_elementwise=True)


def visible(text: pl.Expr) -> pl.Expr:
    """What `n_chars` counts, by definition; it is computed once for each character, a column in one pass."""
    return text.str.replace_all(_INVISIBLE, "").str.len_chars().cast(pl.Int64)


def share(text: pl.Expr) -> pl.Expr:
    """What `han_ratio` is, by definition."""
    han = text.str.count_matches(r"\p{Han}")
    letters = text.str.count_matches(r"[\p{Han}\p{L}\p{N}]")  # the radicals of Han are symbols, not letters
    return pl.when(letters > 0).then(han / letters).otherwise(0.0)


def _n_chars(texts: pl.Series) -> pl.Series:
    counts = pl.DataFrame(counted(texts, _classes(), _CLASSES))
    return counts.select(pl.when(texts.is_not_null()).then(pl.sum_horizontal(_VISIBLE)).alias(texts.name)).to_series()


def _han_ratio(texts: pl.Series) -> pl.Series:
    counts, han = pl.DataFrame(counted(texts, _classes(), _CLASSES)), pl.col("han")
    letters = han + pl.col("letter") + pl.col("hidden_letter")
    return counts.select(pl.when(letters > 0).then(han / letters).otherwise(0.0).alias(texts.name)).to_series()


@cache
def _classes() -> Classes:
    one, classes = pl.col("one"), np.zeros(CODES, np.uint8)
    seen = visible(one) > 0
    letter, han = share("我" + one) < 1, share(one) > 0
    members = (
        every_character()
        .to_frame("one")
        .select(han=han & seen, letter=letter & seen, sign=seen & ~letter & ~han, hidden_letter=letter & ~seen)
    )
    for place, name in enumerate(_CLASSES, 1):
        classes[members[name].to_numpy()] = place
    return classes
