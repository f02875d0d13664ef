"""The language of a text, by its script and by characters and words that only one language writes.

No model: identifiers trained on web pages call a few lines of Cantonese or classical Chinese Mandarin.
"""

from functools import cache

import numpy as np
import polars as pl

from pipelines.text.characters import CODES, Classes, counted, every_character
from pipelines.text.chunks import in_slices
from pipelines.text.lexicon import lexicon
from pipelines.text.pii.placeholders import without_placeholders

LANGUAGES = ("mandarin", "cantonese", "japanese", "korean", "english", "classical", "other", "unknown")

_HAN = ("han", "cantonese", "rather_cantonese", "classical", "modern", "japanese")
_CLASSES = (*_HAN, "kana", "hangul", "latin", "foreign_latin", "other")
_LETTERS_OF_A_WORD = 4  # so that an English word weighs about what a Chinese character does


def language(text: pl.Expr) -> pl.Expr:
    """The language that most of `text` is written in: one of LANGUAGES.

    `mandarin` in either script; `other` for any other script, and for Latin letters that are not English; `unknown`
    where too little is left to tell: no letter, or a Latin word or two. A null is `unknown`. Placeholders of personal
    data do not count. A Chinese text is Mandarin unless the signs of Cantonese or of classical Chinese are dense, so a
    short one in either may pass as Mandarin.
    """
    return text.map_batches(lambda texts: in_slices(_language, texts), return_dtype=pl.String, is_elementwise=True)


def _language(texts: pl.Series) -> pl.Series:
    bare = without_placeholders(texts, " ") if texts.str.contains("[", literal=True).any() else texts
    counts = pl.DataFrame(counted(bare, _classes(), _CLASSES)).with_columns(bare.alias("text"))
    # What there is of each script, a word of letters counted as one.
    han, words = pl.sum_horizontal(_HAN), (pl.col("latin") + pl.col("foreign_latin")) / _LETTERS_OF_A_WORD
    every = han + words + pl.sum_horizontal("kana", "hangul") + pl.col("other") / _LETTERS_OF_A_WORD
    return (
        counts.lazy()
        .with_columns(han=han, words=words, all=every)
        .with_columns(_words())
        .select(_verdict().alias(texts.name))
        .collect()
        .to_series()
    )


def _words() -> list[pl.Expr]:
    """How many words are Cantonese or English, where characters leave it open."""
    of_cantonese, of_english = _patterns()
    hinted = pl.col("cantonese") + pl.col("rather_cantonese") > 0
    mostly_latin = 2 * pl.col("words") > pl.col("all")
    return [
        _where(hinted).str.count_matches(of_cantonese).alias("cantonese_words"),
        _where(mostly_latin).str.count_matches(of_english).alias("english_words"),
        _where(mostly_latin).str.count_matches(r"\p{Latin}+").alias("latin_words"),
    ]


def _where(condition: pl.Expr) -> pl.Expr:
    return pl.when(condition).then(pl.col("text")).otherwise(pl.lit(""))


def _verdict() -> pl.Expr:
    letters, han, kana = pl.col("all"), pl.col("han"), pl.col("kana")
    cantonese = pl.col("cantonese") + pl.col("cantonese_words")
    hints = cantonese + pl.col("rather_cantonese")
    return (
        pl.when(letters == 0)
        .then(pl.lit("unknown"))
        .when(2 * pl.col("words") > letters)
        .then(_latin())
        .when(2 * pl.col("other") / _LETTERS_OF_A_WORD > letters)
        .then(pl.lit("other"))
        .when((pl.col("hangul") >= 2) & (pl.col("hangul") >= 0.3 * letters))
        .then(pl.lit("korean"))
        .when((kana >= 3) & (kana >= 0.25 * (kana + han)))
        .then(pl.lit("japanese"))
        .when((pl.col("japanese") >= 2) & (pl.col("japanese") >= 0.08 * han))
        .then(pl.lit("japanese"))
        .when(((cantonese >= 1) & (cantonese >= 0.08 * han)) | ((cantonese >= 2) & (hints >= 0.03 * han)))
        .then(pl.lit("cantonese"))
        .when((han >= 16) & (pl.col("classical") >= 0.15 * han) & (pl.col("modern") <= 0.02 * han))
        .then(pl.lit("classical"))
        .when(han > 0)
        .then(pl.lit("mandarin"))
        .otherwise(pl.lit("unknown"))
    )


def _latin() -> pl.Expr:
    """Of a text in Latin letters: English where one word in eight at least is among its commonest."""
    words, known = pl.col("latin_words"), pl.col("english_words")
    return (
        pl.when((words <= 2) & (known == 0))
        .then(pl.lit("unknown"))
        .when((known >= 0.125 * words) & (pl.col("foreign_latin") <= 0.02 * pl.col("latin")))
        .then(pl.lit("english"))
        .otherwise(pl.lit("other"))
    )


@cache
def _classes() -> Classes:
    every, classes = every_character(), np.zeros(CODES, np.uint8)
    for pattern, name in (
        (r"\p{L}", "other"),
        (r"\p{Latin}", "foreign_latin"),
        (r"[a-zA-Z]", "latin"),
        (r"\p{Hangul}", "hangul"),
        (r"[\p{Hiragana}\p{Katakana}]", "kana"),
        (r"\p{Han}", "han"),
    ):
        classes[every.str.contains(pattern).to_numpy()] = _CLASSES.index(name) + 1
    for name in _HAN[1:]:
        classes[[ord(one) for one in "".join(lexicon("language", __file__)[name].split())]] = _CLASSES.index(name) + 1
    return classes


@cache
def _patterns() -> tuple[str, str]:
    """Words of Cantonese, and English words."""
    words = lexicon("language", __file__)
    return "|".join(words["cantonese_words"]), rf"(?i)\b(?:{'|'.join(words['english'].split())})\b"
