"""Bands: texts whose signatures agree in all rows of a band are candidates; one 64-bit key stands for a band.

With (bands, rows) = (b, r), two texts of Jaccard similarity s become candidates with the chance 1 - (1 - s^r)^b: at
(18, 7) that is 0.986 at s = 0.8, 0.999 at 0.85, 0.40 at 0.6. Candidates are then verified (`pipelines.dedup.jaccard`).
"""

from typing import NamedTuple

import numpy as np

from pipelines.core.arrow import read_only
from pipelines.core.kernels import Bytes, Keys, Places, Words, kernel
from pipelines.dedup.minhash import Mode, in_steps, is_exact, permutations, room, sign
from pipelines.dedup.shingles import LANES
from pipelines.errors import RequestError

BANDS = (18, 7)


class Runs(NamedTuple):
    """Rows that share a key, run after run.

    rows: uint32 [m], rising within a run.
    starts: int64 [n_runs + 1]; run i is `rows[starts[i]:starts[i + 1]]`, two rows at least.
    """

    rows: Words
    starts: Places


def band_keys(
    data: Bytes,
    offsets: Places,
    mode: Mode = "exact",
    num_perm: int = 128,
    bands: tuple[int, int] = BANDS,
    seed: int = 1,
    *,
    rows: Words | None = None,
    threads: int = 1,
) -> Keys:
    """The keys of all bands of the texts in `buffers` form, uint64 [b, n]; of `rows` (uint32 [n]) alone where given.

    A key depends on the text and the settings alone (not on `threads`), and may be stored. Texts without a shingle
    share theirs.

    Raises:
        RequestError: for an unknown mode, or bands that `num_perm` permutations do not fill.
    """
    exact = is_exact(mode)
    require_bands(bands, num_perm)
    b, r = bands
    # Some permutations twice, so that the kernel works in full steps.
    padded = -(-b * r // LANES) * LANES
    factors, summands = (np.resize(numbers[: b * r], padded) for numbers in permutations(num_perm, seed))
    starts, stops = offsets[:-1], offsets[1:]
    if rows is not None:
        starts, stops = read_only(starts[rows]), read_only(stops[rows])
    keys = np.empty((b, len(starts)), np.uint64)
    in_steps(
        lambda first, last: _all_keys(data, starts, stops, first, last, exact, factors, summands, r, keys),
        len(starts),
        threads,
    )
    return keys


def require_bands(bands: tuple[int, int], num_perm: int) -> None:
    """Raises RequestError for bands that so many permutations do not fill."""
    b, r = bands
    if min(b, r) < 1 or b * r > num_perm:
        raise RequestError(f"{b} bands of {r} rows do not fit {num_perm} permutations", hint="choose others: 18 of 7")


@kernel
def _all_keys(
    data: Bytes,
    starts: Places,
    stops: Places,
    first: int,
    last: int,
    exact: bool,
    a: Words,
    b: Words,
    r: int,
    keys: Keys,
) -> None:
    characters, sizes, words, hashes = room()
    signature = np.empty(a.shape[0], np.uint32)
    for row in range(first, last):
        sign(data, starts[row], stops[row], exact, a, b, characters, sizes, words, hashes, signature)
        for band in range(keys.shape[0]):
            key = np.uint64(band)
            for i in range(band * r, band * r + r):
                key = (key ^ np.uint64(signature[i])) * np.uint64(0x9E3779B97F4A7C15)
                key ^= key >> np.uint64(31)
            keys[band, row] = key


def runs(keys: Keys, rows: Words | None = None) -> Runs:
    """Rows with equal keys in `keys` (uint64 [n]); key i belongs to `rows[i]` (rising), or to row i.

    Upper bits of the key and the number of the row are sorted as one number, which takes 8 bytes per row and a quarter
    of the time of an argsort.
    """
    n = len(keys)
    row_bits = np.uint64(max(n - 1, 1).bit_length())
    packed = keys >> row_bits << row_bits
    packed |= np.arange(n, dtype=np.uint64)
    packed.sort()
    found, starts = _runs(packed, row_bits, keys)
    return Runs(found if rows is None else rows[found], starts)


@kernel
def _runs(packed: Keys, row_bits: np.uint64, keys: Keys) -> tuple[Words, Places]:
    """The runs of a sorted array of upper key bits and rows.

    Rows whose keys agree in the upper bits only are few, and parted here.
    """
    n = packed.shape[0]
    mask = (np.uint64(1) << row_bits) - np.uint64(1)
    n_pairs = 0
    for i in range(1, n):
        n_pairs += packed[i] >> row_bits == packed[i - 1] >> row_bits
    rows = np.empty(2 * n_pairs, np.uint32)
    starts = np.zeros(n_pairs + 1, np.int64)
    n_rows = 0
    n_runs = 0
    first = 0
    while first < n:
        stop = first + 1
        while stop < n and packed[stop] >> row_bits == packed[first] >> row_bits:
            stop += 1
        left = stop  # rows that are still in no run stand before it
        while left - first > 1:
            key = keys[packed[first] & mask]
            other = first
            for i in range(first, left):
                row = packed[i] & mask
                if keys[row] == key:
                    rows[n_rows] = row
                    n_rows += 1
                else:
                    packed[other] = packed[i]
                    other += 1
            left = other
            if n_rows - starts[n_runs] > 1:
                n_runs += 1
                starts[n_runs] = n_rows
            else:
                n_rows = starts[n_runs]
        first = stop
    return rows[:n_rows].copy(), starts[: n_runs + 1].copy()
