"""Passages: fingerprints that show that a text shares words with another, which holds far more or far less.

Near-duplicates are alike as wholes; an answer that somebody quotes half of, or a story with a long greeting before it,
is not. So some hashes of every 70 bytes in a row of the text are kept, by winnowing (Schleimer, Wilkerson and Aiken,
SIGMOD 2003): of every 15 hashes side by side the smallest, the last one of equal ones. Two texts that have 84 bytes
in a row in common share a fingerprint, wherever these stand; two that have no 70 in common share none. Bytes of UTF-8,
for they weigh the content: 84 are 28 Chinese characters or a line of English.
"""

import numpy as np
import polars as pl

from pipelines.core.arrow import Texts, buffers
from pipelines.core.kernels import Bytes, Keys, Places, Words, kernel

HASHED = 70  # bytes under one hash
WINDOW = 15  # hashes of which one is kept
LENGTH = HASHED + WINDOW - 1  # a passage of so many bytes is always found

_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd: no byte is lost in the sum


def passages(texts: Texts) -> pl.DataFrame:
    """The fingerprints of the passages of each text: `row` (UInt32), `passage` (UInt64), in the order of the text.

    A text of fewer than `LENGTH` bytes, and a null, has none; any other about one for every 8 bytes.
    """
    data, offsets = buffers(texts)
    nothing = np.empty(0, np.uint32), np.empty(0, np.uint64)
    n_marks = _winnow(data, offsets, HASHED, WINDOW, *nothing)
    rows, marks = np.empty(n_marks, np.uint32), np.empty(n_marks, np.uint64)
    _winnow(data, offsets, HASHED, WINDOW, rows, marks)
    return pl.DataFrame({"row": rows, "passage": marks}, schema={"row": pl.UInt32, "passage": pl.UInt64})


@kernel
def _winnow(data: Bytes, offsets: Places, hashed: int, window: int, rows: Words, marks: Keys) -> int:
    """Fills `rows` and `marks`, as far as they reach; returns how many fingerprints there are."""
    hashes = np.zeros(window, np.uint64)
    leaving = np.uint64(1)  # the factor of the byte that drops out of the sum
    for _ in range(hashed):
        leaving *= _FACTOR
    n_marks = 0
    for row in range(offsets.shape[0] - 1):
        start, stop = offsets[row], offsets[row + 1]
        total = np.uint64(0)
        smallest = np.uint64(0)
        at = kept = -1
        for end in range(start, stop):
            total = total * _FACTOR + np.uint64(data[end])
            place = end - start - hashed + 1
            if place > 0:
                total -= leaving * np.uint64(data[end - hashed])
            if place < 0:
                continue
            mixed = total ^ total >> np.uint64(32)
            mixed *= np.uint64(0xD6E8FEB86659FD93)
            mixed ^= mixed >> np.uint64(32)
            hashes[place % window] = mixed
            if at < 0 or mixed <= smallest:
                smallest, at = mixed, place
            elif place - at >= window:
                at = place - window + 1
                smallest = hashes[at % window]
                for i in range(at + 1, place + 1):
                    if hashes[i % window] <= smallest:
                        smallest, at = hashes[i % window], i
            if place >= window - 1 and at != kept:
                kept = at
                if n_marks < marks.shape[0]:
                    rows[n_marks] = row
                    marks[n_marks] = smallest
                n_marks += 1
    return n_marks
