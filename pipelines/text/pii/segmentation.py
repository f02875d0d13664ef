"""Texts read as words, the way that is most probable word by word, and where a name of a person would read better.

A run of Chinese characters is a lattice of the words that could stand in it; the cost of a word is the negative
logarithm of its probability, the reading is the cheapest path. A name of a person is a further edge of the lattice,
with a cost of its own; how much cheaper the run reads with that edge than without any is its `margin`, in nats.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.core.arrow import buffers
from pipelines.core.kernels import Places
from pipelines.text.pii.lattice import code_points, read_runs
from pipelines.text.pii.name_model import name_model
from pipelines.text.pii.vocabulary import vocabulary


class Segmented(NamedTuple):
    """A column as words, and the names that could stand in it.

    `tokens`: the word id of each token; `begins` and `ends`: its bytes, counted through the column; `row_tokens`: the
    first token of each row (n + 1); `offsets`: the first byte of each row (n + 1).

    `names`: a frame of `row`, `start`, `core`, `end` (bytes of the row; the core is the name without a form of address
    behind it), `made`, `margin`, and roles: `left` and `right` of the words that end before and begin behind it, `own`
    of the word that it is (see `lattice`).
    """

    texts: pl.Series
    tokens: npt.NDArray[np.int32]
    begins: Places
    ends: Places
    row_tokens: Places
    offsets: Places
    names: pl.DataFrame


def segment(texts: pl.Series) -> Segmented:
    """`texts` (folded, without nulls) as words and candidate names."""
    data, offsets = buffers(texts)
    codes, at, rows = code_points(data, offsets)
    words = vocabulary()
    tokens, starts, row_tokens, places, margins = read_runs(
        codes, rows, words.keys, words.ids, words.costs, words.of_character, *name_model()
    )
    start, core, end, made, left, right, own = places.T
    row = np.searchsorted(rows, start, side="right") - 1
    names = pl.DataFrame(
        {
            "row": row.astype(np.uint32),
            "start": at[start] - offsets[row],
            "core": at[core] - offsets[row],
            "end": at[end] - offsets[row],
            "made": made.astype(np.uint8),
            "margin": margins,
            "left": left.astype(np.uint32),
            "right": right.astype(np.uint32),
            "own": own.astype(np.uint32),
        }
    )
    begins = at[starts]
    return Segmented(texts, tokens, begins, np.append(begins[1:], at[-1]), row_tokens, offsets, names)
