"""What several stages do to a string, or to a column of them: a key to compare it by, its length, its Chinese share."""

import unicodedata
from functools import cache
from typing import Literal

import numpy as np
import polars as pl

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
    plain = text.str.normalize("NFKC").str.to_lowercase().str.replace_all(_INVISIBLE, "")
    return plain.str.normalize("NFKC")  # what stood apart may now compose


def key_of(text: str, without: Level) -> str:
    """A single string's key, for comparison only; each level leaves out what those before it do, and more."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    if without == "form":
        return plain
    if without == "space":
        return "".join(plain.split())
    letters = "".join(filter(str.isalnum, plain))
    return letters if without == "marks" else letters.translate(_to_simplified())


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
