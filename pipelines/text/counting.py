"""How many characters of each class a text holds, for all classes in one pass over the bytes of a column."""

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.core.arrow import buffers, decoded
from pipelines.core.kernels import Bytes, Places, kernel

CODES = 0x40000  # every character with letters or signs lies below; what lies above counts as the last one
_TAGS = 0xE0000  # but for these, which are invisible and never counted

Classes = npt.NDArray[np.uint8]
"""One entry a code point: its class, from 1; 0 for what is not counted."""


def every_character() -> pl.Series:
    """All code points below CODES, in order, each a string; a surrogate is U+FFFD."""
    return pl.Series([chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd" for code in range(CODES)])


def counted(texts: pl.Series, classes: Classes, names: tuple[str, ...]) -> dict[str, npt.NDArray[np.int64]]:
    """Per class of `names` (the first is class 1) how many of its characters each text holds; 0 for a null."""
    counts = _counts(*buffers(texts), classes, len(names) + 1)
    return {name: counts[:, n] for n, name in enumerate(names, 1)}


@kernel
def _counts(data: Bytes, offsets: Places, classes: Classes, n_classes: int) -> npt.NDArray[np.int64]:
    rows = len(offsets) - 1
    counts = np.zeros((rows, n_classes), np.int64)
    for row in range(rows):
        at, end, here = offsets[row], offsets[row + 1], counts[row]
        while at < end:
            code, at = decoded(data, at)
            if not _TAGS <= code < _TAGS + 0x1000:
                here[classes[min(code, len(classes) - 1)]] += 1
    return counts
