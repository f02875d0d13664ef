"""Bands: texts whose signatures agree in all rows of a band are candidates; one 64-bit key stands for a band.

With (bands, rows) = (b, r), two texts of Jaccard similarity s become candidates with the chance 1 - (1 - s^r)^b: at
(18, 7) that is 0.986 at s = 0.8, 0.999 at 0.85, 0.40 at 0.6. Candidates are then verified (`pipelines.dedup.jaccard`).
"""

import numpy as np

from pipelines.core.arrow import read_only
from pipelines.core.kernels import Bytes, Keys, Places, Words, kernel
from pipelines.dedup.components import Runs
from pipelines.dedup.minhash import NUM_PERM, SEED, Mode, is_exact, new_block, permutations, sign
from pipelines.dedup.shingles import LANES

BANDS = (18, 7)


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
    # Some permutations twice, so that the kernel works in full steps.
    padded = -(-b * r // LANES) * LANES
    factors, summands = (np.resize(numbers[: b * r], padded) for numbers in permutations(NUM_PERM, SEED))
    starts, stops = offsets[:-1], offsets[1:]
    if rows is not None:
        starts, stops = read_only(starts[rows]), read_only(stops[rows])
    keys = np.empty((b, len(starts)), np.uint64)
    _all_keys(data, starts, stops, exact, factors, summands, r, keys)
    return keys


@kernel
def _all_keys(data: Bytes, starts: Places, stops: Places, exact: bool, a: Words, b: Words, r: int, keys: Keys) -> None:
    block = new_block()
    signature = np.empty(a.shape[0], np.uint32)
    for row in range(keys.shape[1]):
        sign(data, starts[row], stops[row], exact, a, b, block, signature)
        for band in range(keys.shape[0]):
            key = np.uint64(band)
            for i in range(band * r, band * r + r):
                key = (key ^ np.uint64(signature[i])) * np.uint64(0x9E3779B97F4A7C15)
                key ^= key >> np.uint64(31)
            keys[band, row] = key


def runs(keys: Keys, rows: Words | None = None) -> Runs:
    """Rows with equal keys in `keys` (uint64 [n]); key i belongs to `rows[i]` (rising), or to row i.

    The upper bits of the key and the number of the row are sorted as one number, which takes 8 bytes per row and a
    quarter of the time of an argsort. The lower bits, as many as number the rows, are not compared: of n random keys
    about n³ / 2^64 pairs agree in the upper bits alone, and candidates are verified anyway.
    """
    n = len(keys)
    row_bits = np.uint64(max(n - 1, 1).bit_length())
    packed = keys >> row_bits << row_bits
    packed |= np.arange(n, dtype=np.uint64)
    packed.sort()
    upper = packed >> row_bits
    same = np.zeros(n + 1, np.bool_)  # whether a row has the key of the one before it
    np.equal(upper[1:], upper[:-1], out=same[1:-1])
    shared = same[:-1] | same[1:]
    members = (packed[shared] & ((np.uint64(1) << row_bits) - np.uint64(1))).astype(np.uint32)
    starts = np.append(np.flatnonzero(~same[:-1][shared]), len(members))
    return Runs(members if rows is None else rows[members], starts)
