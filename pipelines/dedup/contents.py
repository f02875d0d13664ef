"""Texts by their content: a digest of 128 bits each, and the number under which the index knows it."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.core.kernels import Keys, Places, kernel

Flags = NDArray[np.bool_]

Seeds = tuple[int, int]


def digests(texts: pl.Series, seeds: Seeds) -> Keys:
    """Digests of texts without nulls, uint64 [n, 2].

    The seeds are drawn anew for each index: nobody can write two texts that collide. The hash is polars', which holds
    for one version of polars.
    """
    return np.stack([texts.hash(seed).to_numpy() for seed in seeds], axis=1)


def numbered(known: Keys, asked: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64], Flags]:
    """Looks digests up among those known: number i is the i-th known one, new ones are counted on from there.

    Args:
        known: uint64 [n, 2], all different.
        asked: uint64 [m, 2], in any order, some perhaps the same.

    Returns:
        numbers: int64 [m], of each digest that was asked.
        firsts: int64 [number of new digests], where each was asked first.
        met: bool [n], which of the known were asked.
    """
    numbers, met = np.full(len(asked), -1, np.int64), np.zeros(len(known), np.bool_)
    _walk(known, asked, numbers, met)
    rest = np.flatnonzero(numbers < 0)
    others = asked[rest]
    slots = np.zeros(1 << max(1, (2 * len(rest)).bit_length()), np.int64)
    firsts, distinct_of = np.empty(len(rest), np.int64), np.empty(len(rest), np.int64)
    distinct = _collapse(others, slots, firsts, distinct_of)
    number_of = np.full(distinct, -1, np.int64)
    if distinct:
        _look_up(known, others, slots, firsts, number_of, met)
    new = number_of < 0
    number_of[new] = len(known) + np.arange(new.sum())
    numbers[rest] = number_of[distinct_of]
    return numbers, rest[firsts[:distinct][new]], met


@kernel
def _walk(known: Keys, asked: Keys, numbers: Places, met: Flags) -> None:
    """Numbers what is asked in the order in which it is known, as a table that grew since is: no search is needed."""
    next_known = 0
    for row in range(asked.shape[0]):
        if next_known == known.shape[0]:
            return
        if known[next_known, 0] == asked[row, 0] and known[next_known, 1] == asked[row, 1]:
            numbers[row] = next_known
            met[next_known] = True
            next_known += 1


@kernel
def _collapse(asked: Keys, slots: Places, firsts: Places, distinct_of: Places) -> int:
    """Counts the different digests, in the order in which they come; `slots` is a table of them, open, 0 for free."""
    mask = np.uint64(slots.shape[0] - 1)
    distinct = 0
    for row in range(asked.shape[0]):
        slot = asked[row, 0] & mask
        while True:
            held = slots[slot]
            if held == 0:
                firsts[distinct] = row
                distinct += 1
                slots[slot] = distinct
                distinct_of[row] = distinct - 1
                break
            first = firsts[held - 1]
            if asked[first, 0] == asked[row, 0] and asked[first, 1] == asked[row, 1]:
                distinct_of[row] = held - 1
                break
            slot = (slot + np.uint64(1)) & mask
    return distinct


@kernel
def _look_up(known: Keys, asked: Keys, slots: Places, firsts: Places, number_of: Places, met: Flags) -> None:
    mask = np.uint64(slots.shape[0] - 1)
    for number in range(known.shape[0]):
        slot = known[number, 0] & mask
        while slots[slot] != 0:
            distinct = slots[slot] - 1
            first = firsts[distinct]
            if asked[first, 0] == known[number, 0] and asked[first, 1] == known[number, 1]:
                number_of[distinct] = number
                met[number] = True
                break
            slot = (slot + np.uint64(1)) & mask
