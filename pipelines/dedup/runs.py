"""Files of arrays: sorted band runs, and whatever else the index remembers.

A file is written once, under a name that never was, and is on the disk before anyone hears of it. Its entry, which the
index's manifest keeps, says where each array lies and what its bytes sum up to: a file cut short, a flipped bit or a
file from elsewhere is told from the real one before a number of it is believed.
"""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

Array = NDArray[Any]
Entry = dict[str, Any]


class Damaged(Exception):
    """A file is missing, or not what its entry says. The index is a cache: whoever meets this makes it anew."""


def write(folder: Path, kind: str, arrays: Iterable[tuple[str, Array]]) -> Entry:
    """Writes named arrays into a new file of `folder`, one after the other, flushed to the disk; returns its entry.

    Args:
        folder: where the file goes.
        kind: how the file's name begins.
        arrays: taken one at a time, so that one alone need be in memory.

    Raises:
        OSError: where the disk is full or cannot be written; no file is left then.
    """
    path = folder / f"{kind}-{secrets.token_hex(8)}"
    described: dict[str, Any] = {}
    try:
        with path.open("xb") as file:
            for name, array in arrays:
                laid = np.ascontiguousarray(array)
                raw = laid.reshape(-1).view(np.uint8)
                described[name] = {
                    "dtype": laid.dtype.str,
                    "shape": laid.shape,
                    "offset": file.tell(),
                    "sum": xxh3_64_intdigest(raw.data),
                }
                file.write(raw.data)
            size = file.tell()
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return {"file": path.name, "bytes": size, "arrays": described}


def read(folder: Path, entry: Entry, name: str) -> Array:
    """One array of a file, its sum checked.

    Read, not mapped: what goes wrong is an error here, and no signal that ends the process.

    Raises:
        Damaged: where the file is not there, or its bytes are not those that were written.
    """
    described = entry["arrays"][name]
    dtype = np.dtype(described["dtype"])
    count = int(np.prod(described["shape"], dtype=np.int64))
    path = folder / entry["file"]
    try:
        if path.stat().st_size != entry["bytes"]:
            raise Damaged(f"{path.name} is of another size than was written")
        array = np.fromfile(path, dtype, count, offset=described["offset"])
    except OSError as error:
        raise Damaged(f"{path.name} cannot be read: {error.strerror}") from error
    if len(array) != count or xxh3_64_intdigest(array.view(np.uint8).data) != described["sum"]:
        raise Damaged(f"{path.name} does not hold the bytes that were written")
    return array.reshape(described["shape"])


def length(entry: Entry, name: str) -> int:
    """How many items an array has, without a look at them."""
    return int(entry["arrays"][name]["shape"][0])
