"""Writing files that outlive a crash: whole or not at all, and on the disk when the call returns."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file to be written piece by piece, for its owner alone: it is there once the block has ended well, and as it
    was where it has not. Its folder is made where it is missing."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".part")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    sync(path.parent)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, for its owner alone; its folder is made where it is missing."""
    with writing(path) as file:
        file.write(content)
