"""What several stages do to a string, as polars expressions over a column."""

import polars as pl

# Zero-width and joining characters, soft hyphen, byte-order mark: invisible, so never part of a key.
_INVISIBLE = "[\\p{Z}\\s\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\u00ad]"


def key(text: pl.Expr) -> pl.Expr:
    """A text's key: NFKC, lower case, without white space and invisible characters.

    Two texts with the same key are the same text to a reader. For comparison only: NFKC turns ，？！ into ASCII.
    """
    return text.str.normalize("NFKC").str.to_lowercase().str.replace_all(_INVISIBLE, "")


def n_chars(text: pl.Expr) -> pl.Expr:
    """Characters of `text`, white space and invisible ones not counted (Int64)."""
    return text.str.replace_all(_INVISIBLE, "").str.len_chars().cast(pl.Int64)


def han_ratio(text: pl.Expr) -> pl.Expr:
    """Share of Chinese characters among the letters and digits of `text`, 0 … 1; 0 where there are none.

    Punctuation is left out, so that "……" or a row of emoji neither raises nor lowers the share.
    """
    han = text.str.count_matches(r"\p{Han}")
    letters = text.str.count_matches(r"[\p{L}\p{N}]")
    return pl.when(letters > 0).then(han / letters).otherwise(0.0)
