"""Writing files that outlive a crash: whole or not at all, and on the disk when the call returns."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pipelines.errors import StorageFull


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, for its owner alone; see `writing`."""
    with writing(path) as file:
        file.write(content)


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file to be written piece by piece, for its owner alone: it is there once the block has ended well, and as it
    was where it has not. Its folder is made where it is missing.

    Raises StorageFull where there is no room for it.
    """
    scratch = path.with_name(path.name + ".part")
    with full_disk_reported(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
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


@contextmanager
def full_disk_reported(path: Path) -> Iterator[None]:
    """A full disk as StorageFull: nothing below `path` was changed by halves."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        free = shutil.disk_usage(next(one for one in (path, *path.parents) if one.exists())).free
        raise StorageFull(
            f"no room left on the device ({free / 1e6:.1f} MB free); what stood there before is untouched",
            where=path,
            remedy="free some space, then run the same command again",
        ) from error
