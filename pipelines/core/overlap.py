"""What stands in so many characters or words in a row: as it is, and as numbers, the same wherever it stands."""

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.uint32]
Hashes = NDArray[np.uint64]
Items = TypeVar("Items", str, tuple[str, ...])


def windows(items: Items, width: int) -> Iterator[Items]:
    """Each run of `width` characters or words, from left to right; none of what is shorter."""
    return (items[at : at + width] for at in range(len(items) - width + 1))


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
