"""Windows of characters as numbers: the same words give the same number, wherever they stand."""

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.uint32]
Hashes = NDArray[np.uint64]


def points(text: str) -> Points:
    """The code points of a text, one a character; a lone surrogate is one as well."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def hashes(points: Points, width: int, base: int, apart: int = 1) -> Hashes:
    """One number for each window of `width` characters that begins at a multiple of `apart`: a polynomial in `base`,
    modulo 2^64; overflow is meant.
    """
    n = max(0, len(points) - width + 1)
    total = np.zeros(-(-n // apart), np.uint64)
    for place in range(width if n else 0):
        total *= np.uint64(base)
        total += points[place : place + n : apart]
    return total
