"""Frames whose bytes lie on the disk: what a step holds of a corpus while it looks at all of it."""

import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

import polars as pl
import pyarrow as pa
import pyarrow.ipc

T = TypeVar("T")

ROWS_AT_ONCE = 20_000
_ALIGNED = 64  # bytes, as Arrow wants its buffers


def spilled(frames: Iterable[pl.DataFrame], folder: Path | None = None) -> pl.DataFrame:
    """The rows of all frames, which have one schema and are made one after the other, below each other.

    They are written to a file in `folder` that has no name (in the system's temporary folder by default), and are read
    from there where they are needed: the kernel may let go of them at any time. The room on the disk is free again when
    the frame is, or when the process ends, however it does. What is selected, sorted or filtered of it holds no text of
    its own either. Raises OSError where the disk is full.
    """
    places = []
    with TemporaryFile(dir=folder, buffering=0) as file:  # polars writes past a buffer of Python's
        for frame in frames:
            begin = file.seek(-file.seek(0, os.SEEK_END) % _ALIGNED, os.SEEK_END)
            frame.write_ipc(file, compression="uncompressed")
            places.append((begin, file.seek(0, os.SEEK_END) - begin))
        # One for all: each keeps the file open, and a process may have no more than some hundred of these.
        mapped = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return pl.concat([_read(mapped.slice(*place)) for place in places], rechunk=False)


def spilled_by_slices(
    work: Callable[[pl.DataFrame], pl.DataFrame], frame: pl.DataFrame, folder: Path | None = None
) -> pl.DataFrame:
    """`spilled`, of what `work` makes of some rows at a time; of a frame without rows, what it makes of that."""
    return spilled(map(work, slices(frame)), folder)


def slices(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The frame in order, some rows at a time; one that is empty is one slice."""
    yield from frame.iter_slices(ROWS_AT_ONCE) if frame.height else [frame]


def in_batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items in order, some at a time; none at all are one batch."""
    for start in range(0, max(len(items), 1), ROWS_AT_ONCE):
        yield items[start : start + ROWS_AT_ONCE]


def _read(written: pa.Buffer) -> pl.DataFrame:
    read = pl.from_arrow(pyarrow.ipc.open_file(written).read_all(), rechunk=False)
    assert isinstance(read, pl.DataFrame)
    return read
