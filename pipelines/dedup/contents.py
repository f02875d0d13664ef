"""Which texts are equal: told by digests of 128 bits each."""

import secrets

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.core.kernels import Keys, Places, Words, kernel
from pipelines.dedup.components import singletons

Seeds = tuple[int, int]


def new_seeds() -> Seeds:
    """Drawn again for each search: nobody can write two texts that collide."""
    return secrets.randbits(64), secrets.randbits(64)


def digests(texts: pl.Series, seeds: Seeds) -> Keys:
    """Digests of texts, uint64 [n, 2]; those of nulls mean nothing."""
    return np.stack([texts.hash(seed).to_numpy() for seed in seeds], axis=1)


def tell_apart(digests: Keys, there: NDArray[np.bool_]) -> tuple[Words, Words]:
    """Which texts are equal.

    Args:
        digests: uint64 [n, 2].
        there: bool [n], whether there is a text; a null is none.

    Returns:
        firsts: uint32 [n], the first row with the same text; of a null, itself.
        distinct: uint32 [m], the first row of each text, rising.
    """
    firsts = singletons(len(there))
    rows = np.flatnonzero(there).astype(np.uint32)
    slots = np.zeros(1 << max(1, (2 * len(rows)).bit_length()), np.int64)
    places, text_of = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    n_texts = _collapse(digests[rows], slots, places, text_of)
    distinct = rows[places[:n_texts]]
    firsts[rows] = distinct[text_of]
    return firsts, distinct


@kernel
def _collapse(digests: Keys, slots: Places, firsts: Places, text_of: Places) -> int:
    """Counts the different digests, in the order in which they come; `slots` is a table of them, open, 0 for free."""
    mask = np.uint64(slots.shape[0] - 1)
    distinct = 0
    for row in range(digests.shape[0]):
        slot = digests[row, 0] & mask
        while True:
            held = slots[slot]
            if held == 0:
                firsts[distinct] = row
                distinct += 1
                slots[slot] = distinct
                text_of[row] = distinct - 1
                break
            first = firsts[held - 1]
            if digests[first, 0] == digests[row, 0] and digests[first, 1] == digests[row, 1]:
                text_of[row] = held - 1
                break
            slot = (slot + np.uint64(1)) & mask
    return distinct
