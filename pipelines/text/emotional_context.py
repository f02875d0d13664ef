"""How much of a person's trouble a text tells: a logistic regression over its characters and pairs of characters.

The weights stand in `lexicons/emotional_context.json`; `tools/train_emotional_context.py` makes them of posts that were
labelled by reading. Beside each weight stands how many of these posts have it, never less than five: no wording of one
person is kept.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.core.arrow import buffers, decoded
from pipelines.core.kernels import Bytes, Keys, Places, Shares, kernel
from pipelines.text.characters import CODES
from pipelines.text.pii.placeholders import without_placeholders

WEIGHTS = Path(__file__).parent / "lexicons" / "emotional_context.json"
# A pair of characters is its first character times this, plus its second one; a single character stands for itself.
_PAIR = 1 << 32

Numbers = npt.NDArray[np.int32]


class Grams(NamedTuple):
    """What is counted: single characters and pairs, each with its number.

    `single`, int32 [CODES]: the number of a character, from 1; 0 for what is not counted. `pairs`, uint64 [n], rising:
    the keys of the pairs; `numbers`, int32 [n]: theirs.
    """

    single: Numbers
    pairs: Keys
    numbers: Numbers


class Model(NamedTuple):
    """The grams, and the `weights` of their numbers, float64 [n + 1] (that of 0 is 0)."""

    grams: Grams
    weights: Shares


def emotional_context(texts: pl.Series) -> pl.Series:
    """The score of each text, 0 … 1 (Float64): see `scores`."""
    return _scores(texts, _model())


def scores(texts: pl.Series, weights: Mapping[str, float]) -> pl.Series:
    """The score of each text by these weights of characters and pairs, 0 … 1 (Float64).

    It is 1 / (1 + exp(−Σ weight·x)), where x of each gram is 1 + ln(how often it stands in the text), scaled so that
    all squares add up to 1. What holds no gram, an empty text too, scores 0.5. Placeholders of personal data do not
    count; a null is an empty text.
    """
    return _scores(texts, _model_of(weights))


def _scores(texts: pl.Series, model: Model) -> pl.Series:
    data, offsets = buffers(without_placeholders(texts))
    sums = _sums(data, offsets, model.grams.single, model.grams.pairs, model.grams.numbers, model.weights)
    return pl.Series(texts.name, 1 / (1 + np.exp(-sums)), dtype=pl.Float64)


def _grams(names: Sequence[str]) -> Grams:
    """The grams of these names of one or two characters, numbered from 1 in their order."""
    single = np.zeros(CODES, np.int32)
    pairs: dict[int, int] = {}
    for number, name in enumerate(names, 1):
        if len(name) == 1:
            single[ord(name)] = number
        else:
            pairs[ord(name[0]) * _PAIR + ord(name[1])] = number
    keys = sorted(pairs)
    return Grams(single, np.array(keys, np.uint64), np.array([pairs[key] for key in keys], np.int32))


def _model_of(weights: Mapping[str, float]) -> Model:
    return Model(_grams(list(weights)), np.array([0.0, *weights.values()]))


@cache
def _model() -> Model:
    read = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return _model_of({gram: weight for gram, (weight, _) in read["grams"].items()})


@kernel
def _sums(
    data: Bytes, offsets: Places, single: Numbers, pairs: Keys, numbers: Numbers, weights: Shares
) -> npt.NDArray[np.float64]:
    """Σ weight·x of each text."""
    rows = len(offsets) - 1
    sums = np.zeros(rows)
    counts = np.zeros(len(weights), np.int32)
    touched = np.zeros(len(weights), np.int32)
    for row in range(rows):
        at, end, before, n_touched = offsets[row], offsets[row + 1], 0, 0
        while at < end:
            code, at = decoded(data, at)
            for length in (1, 2):
                if length == 1:
                    number = single[code] if code < len(single) else 0
                else:
                    key = np.uint64(before * 4294967296 + code)
                    place = np.searchsorted(pairs, key)
                    number = numbers[place] if place < len(pairs) and pairs[place] == key else 0
                if number:
                    if counts[number] == 0:
                        touched[n_touched] = number
                        n_touched += 1
                    counts[number] += 1
            before = code
        total = squares = 0.0
        for n in range(n_touched):
            x = 1 + np.log(counts[touched[n]])
            total += weights[touched[n]] * x
            squares += x * x
            counts[touched[n]] = 0
        if squares > 0:
            sums[row] = total / np.sqrt(squares)
    return sums
