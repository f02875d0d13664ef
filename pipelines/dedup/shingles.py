"""Texts as kernels see them: characters, and shingles of five of them.

A text of n characters has n - 4 shingles; one of 1 to 4 is a single shingle; an empty one has none. A character is its
UTF-8 bytes, read as one big-endian number.
"""

import numpy as np

from pipelines.core.arrow import four_bytes
from pipelines.core.kernels import Bytes, Words, part

SIZE = 5  # characters of a shingle
BLOCK = 512  # shingles that a kernel holds at a time: a long text costs no more memory than a short one
LANES = 16  # the arrays of a block are worked on in steps of this many
ROOM = BLOCK + LANES  # length of an array that holds a block, padded to full steps


@part
def read_characters(
    data: Bytes, start: int, stop: int, characters: Words, sizes: Words, held: int, room: int
) -> tuple[int, int]:
    """Characters of `data[start:stop]`, valid UTF-8, until the text ends or `room` of them are held.

    Fills `characters` (the bytes as a big-endian number) and `sizes` (bytes, 1 … 4) from index `held` on.

    Returns where the reading ended, and how many characters are held now.
    """
    most = min(stop, data.shape[0] - 3)  # where four bytes can be read
    while start < stop and held < room:
        while start < most and held < room:  # nearly all characters of a Chinese text have three bytes
            four = four_bytes(data, start)
            if not 0xE0000000 <= four < 0xF0000000:
                break
            characters[held] = four >> np.uint32(8)
            sizes[held] = 3
            start += 3
            held += 1
        if start >= stop or held >= room:
            break
        lead = np.uint32(data[start])
        if lead < 0x80:
            size = 1
            character = lead
        elif lead < 0xE0:
            size = 2
            character = lead << np.uint32(8) | np.uint32(data[start + 1])
        elif lead < 0xF0:
            size = 3
            character = lead << np.uint32(16) | np.uint32(data[start + 1]) << np.uint32(8) | np.uint32(data[start + 2])
        else:
            size = 4
            character = (
                lead << np.uint32(24)
                | np.uint32(data[start + 1]) << np.uint32(16)
                | np.uint32(data[start + 2]) << np.uint32(8)
                | np.uint32(data[start + 3])
            )
        characters[held] = character
        sizes[held] = size
        start += size
        held += 1
    return start, held
