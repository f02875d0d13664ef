"""Bands: texts whose signatures agree in all rows of a band are candidates; one 64-bit key stands for a band.

With (bands, rows) = (b, r), two texts of Jaccard similarity s become candidates with the chance 1 - (1 - s^r)^b: at
(18, 7) that is 0.986 at s = 0.8, 0.999 at 0.85, 0.40 at 0.6. Candidates are then verified (`pipelines.dedup.jaccard`).
"""

import numpy as np

from pipelines.core.arrow import read_only
from pipelines.core.kernels import Bytes, Keys, Places, Words, by_range, kernel
from pipelines.dedup.components import Runs
from pipelines.dedup.minhash import NUM_PERM, SEED, Mode, is_exact, new_block, permutations, sign
from pipelines.dedup.shingles import LANES

BANDS = (18, 7)

_ROWS = 1024  # a thread's, at least


def band_keys(
    data: Bytes,
    offsets: Places,
    mode: Mode = "exact",
    bands: tuple[int, int] = BANDS,
    *,
    rows: Words | None = None,
) -> Keys:
    """The keys of all bands of the texts in `buffers` form, uint64 [b, n]; only of `rows` (uint32 [n]) if given.

    A key depends on the text and the settings alone, and may be stored. Texts without a shingle share theirs.

    Raises UnknownName for an unknown mode.
    """
    exact = is_exact(mode)
    b, r = bands
    # The first permutations of all bands, then the second ones; some twice, so that the kernel works in full steps.
    order = np.resize(np.arange(b * r).reshape(b, r).T, -(-b * r // LANES) * LANES)
    factors, summands = (numbers[order] for numbers in permutations(NUM_PERM, SEED))
    starts, stops = offsets[:-1], offsets[1:]
    if rows is not None:
        starts, stops = read_only(starts[rows]), read_only(stops[rows])
    keys = np.empty((b, len(starts)), np.uint64)

    def fill(begin: int, end: int) -> None:
        _write_keys(data, starts, stops, exact, factors, summands, r, keys, begin, end)

    by_range(fill, len(starts), _ROWS)
    return keys


@kernel
def _write_keys(
    data: Bytes,
    starts: Places,
    stops: Places,
    exact: bool,
    a: Words,
    b: Words,
    r: int,
    keys: Keys,
    begin: int,
    end: int,
) -> None:
    """The keys of the rows from `begin` to `end`."""
    block = new_block()
    signature = np.empty(a.shape[0], np.uint32)
    bands = keys.shape[0]
    of_row = np.empty(bands, np.uint64)
    for row in range(begin, end):
        sign(data, starts[row], stops[row], exact, a, b, block, signature)
        for band in range(bands):
            of_row[band] = band
        for first in range(0, bands * r, bands):
            for band in range(bands):
                key = (of_row[band] ^ np.uint64(signature[first + band])) * np.uint64(0x9E3779B97F4A7C15)
                of_row[band] = key ^ key >> np.uint64(31)
        for band in range(bands):
            keys[band, row] = of_row[band]


def runs(keys: Keys, rows: Words | None = None) -> Runs:
    """Rows with equal keys in `keys` (uint64 [n]); key i belongs to `rows[i]` (rising), or to row i.

    Most keys are alone, which a table of their lower bits shows. Of the others the upper bits and the number of the row
    are sorted as one number, which takes a quarter of the time of an argsort. The lower bits, as many as number the
    rows, are not compared there: few of the keys that fall into one slot agree in the upper bits alone, and candidates
    are verified anyway.
    """
    maybe = _sharing_a_slot(keys, 8 * len(keys))  # an eighth of the keys that are alone share theirs
    row_bits = np.uint64(max(len(keys) - 1, 1).bit_length())
    packed = keys[maybe] >> row_bits << row_bits
    packed |= maybe
    packed.sort()
    upper = packed >> row_bits
    same = np.zeros(len(maybe) + 1, np.bool_)  # whether a row has the key of the one before it
    np.equal(upper[1:], upper[:-1], out=same[1:-1])
    shared = same[:-1] | same[1:]
    members = (packed[shared] & ((np.uint64(1) << row_bits) - np.uint64(1))).astype(np.uint32)
    starts = np.append(np.flatnonzero(~same[:-1][shared]), len(members))
    return Runs(members if rows is None else rows[members], starts)


@kernel
def _sharing_a_slot(keys: Keys, n_slots: int) -> Keys:
    """The rows, rising, whose key falls into the same slot as another's: by its lower bits, of `n_slots` at least. A
    slot counts to two, in two bits of a byte.
    """
    slots = 4
    while slots < n_slots:
        slots *= 2
    mask, seen = np.uint64(slots - 1), np.zeros(slots // 4, np.uint8)
    for row in range(keys.shape[0]):
        slot = keys[row] & mask
        place, shift = slot >> np.uint64(2), np.uint8((slot & np.uint64(3)) << np.uint64(1))
        if not seen[place] >> shift & np.uint8(2):
            seen[place] += np.uint8(1) << shift
    rows = np.empty(keys.shape[0], np.uint64)
    n = 0
    for row in range(keys.shape[0]):
        slot = keys[row] & mask
        rows[n] = row
        n += seen[slot >> np.uint64(2)] >> np.uint8((slot & np.uint64(3)) << np.uint64(1)) & np.uint8(2) != 0
    return rows[:n].copy()
