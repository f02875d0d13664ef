"""Length and share of Chinese characters, as `pipelines.text.keys` defines them, an order of magnitude faster.

Each character is asked of the definitions once; a column is then one pass over its bytes.
"""

from functools import cache

import numpy as np
import polars as pl

from pipelines.text import keys
from pipelines.text.counting import CODES, Classes, counted, every_character

_VISIBLE = ("han", "letter", "sign")
_CLASSES = (*_VISIBLE, "hidden_letter")  # the fillers of Hangul are letters that nobody sees


def n_chars(text: pl.Expr) -> pl.Expr:
    """Characters of `text`, white space and invisible ones not counted (Int64); null for a null."""
    return text.map_batches(_n_chars, return_dtype=pl.Int64, is_elementwise=True)


def han_ratio(text: pl.Expr) -> pl.Expr:
    """Share of Chinese characters among the letters and digits of `text`, 0 … 1; 0 where there are none."""
    return text.map_batches(_han_ratio, return_dtype=pl.Float64, is_elementwise=True)


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
    visible = keys.n_chars(one) > 0
    letter, han = keys.han_ratio("我" + one) < 1, keys.han_ratio(one) > 0
    asked = (
        every_character()
        .to_frame("one")
        .select(
            han=han & visible, letter=letter & visible, sign=visible & ~letter & ~han, hidden_letter=letter & ~visible
        )
    )
    for place, name in enumerate(_CLASSES, 1):
        classes[asked[name].to_numpy()] = place
    return classes
