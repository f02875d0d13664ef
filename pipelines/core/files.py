"""Writing files that outlive a crash: whole or not at all, and on the disk when the call returns."""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from pipelines.errors import GongqingError, LedgerFull, StorageBroken, StorageDenied, StorageFull, StorageUnreachable

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_DENIED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_PASS_ON = ("dagster", "sqlalchemy", "polars", "pyarrow")
_HARDLY_ROOM = 1 << 20  # bytes; SQLite calls a full disk an I/O error where it needs a file beside the database


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, for its owner alone; see `writing`."""
    with writing(path) as file:
        file.write(content)


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file to be written piece by piece, for its owner alone: it is there once the block has ended well, and as it
    was where it has not. Its folder is made where it is missing. Who writes the same file at the same time waits.
    Raises StorageFull.
    """
    scratch = path.with_name(path.name + ".part")
    with full_disk_reported(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(_alone_in(scratch), "wb") as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                scratch.replace(path)
            except BaseException:
                scratch.unlink(missing_ok=True)
                raise
        sync(path.parent)


def _alone_in(scratch: Path) -> int:
    """An empty file of that name that nobody else writes to: the one that was waited for may have been moved away."""
    while True:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), scratch.stat()):
                os.ftruncate(descriptor, 0)
                return descriptor
        os.close(descriptor)


@contextmanager
def full_disk_reported(path: Path) -> Iterator[None]:
    """A full disk as StorageFull: nothing below `path` was changed by halves."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise StorageFull(
            f"no room left on the device ({_room(path)}); what stood there before is untouched",
            where=path,
            hint="free some space, then run the same command again",
        ) from error


@contextmanager
def storage_errors_reported(home: Path) -> Iterator[None]:
    """What `storage_error` makes of an error, in its place."""
    try:
        yield
    except GongqingError:
        raise
    except Exception as error:
        ours = storage_error(error, home)
        if ours is None:
            raise
        raise ours from error


def storage_error(error: BaseException, home: Path) -> GongqingError | None:
    """The error of ours for a disk that is full, closed to us or broken, wherever in a chain of errors it stands:
    of Python, Arrow, polars, or SQLite below Dagster; None for any other error. One that names no file means `home`.
    """
    chain = list(_chain(error))
    for one in chain:
        if isinstance(one, StorageFull | StorageDenied | StorageBroken | StorageUnreachable | LedgerFull):
            return one
    for one in chain:
        ours = _of_sqlite(one, home) if isinstance(one, sqlite3.Error) else _of_system(one, home)
        if ours is not None:
            return ours
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, what it was raised from and met in the handling of, and those that it is a group of."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        # What an error was met in the handling of is its cause where a library passes it on; a mistake of ours is not.
        passed_on = isinstance(one, OSError | sqlite3.Error) or type(one).__module__.startswith(_PASS_ON)
        before = one.__cause__ or (one.__context__ if passed_on and not one.__suppress_context__ else None)
        waiting += [before] if before is not None else []
        waiting += one.exceptions if isinstance(one, BaseExceptionGroup) else ()


def _of_system(error: BaseException, home: Path) -> GongqingError | None:
    code, named = _errno(error), getattr(error, "filename", None)
    path = Path(os.fsdecode(named)) if isinstance(named, str | bytes) else None
    if code in _FULL:
        places = (home, Path(tempfile.gettempdir()), Path.cwd())  # scratch files lie elsewhere than the home
        return _full(path or next((place for place in places if _is_full(place)), home))
    if code in _DENIED and (path is not None or code == errno.EROFS):
        return _denied(os.strerror(code), path or home, home)
    if code == errno.EIO and path is not None:  # without a file it is a terminal that hung up
        return _broken(os.strerror(code), path)
    if "object-store error" in str(error):  # polars', in the middle of reading
        return StorageUnreachable(
            f"the storage does not answer as it should: {str(error).splitlines()[0]}",
            where="[storage] url of the settings",
            hint="look at AWS_ENDPOINT_URL, AWS_REGION, the keys and the network; then run the same command again",
        )
    return None


def _errno(error: BaseException) -> int:
    """The system's number of an error. Polars, which is written in Rust, has it in its words."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    if isinstance(error, OSError) or type(error).__module__.startswith("polars"):
        words = re.search(r"\(os error (\d+)\)", str(error))
        return int(words[1]) if words else 0
    return 0


def _of_sqlite(error: sqlite3.Error, home: Path) -> GongqingError | None:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    cannot_tell = code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
    if code == sqlite3.SQLITE_FULL or (cannot_tell and _is_full(home)):
        return _full(home)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) or (cannot_tell and not os.access(home, os.W_OK)):
        return _denied(str(error), home, home)
    return _broken(str(error), home) if code == sqlite3.SQLITE_IOERR else None


def _full(path: Path) -> StorageFull:
    return StorageFull(
        f"no room left on the device ({_room(path)})",
        where=path,
        hint="free some space, then run the same command again: it goes on from what is whole",
    )


def _denied(words: str, path: Path, home: Path) -> StorageDenied:
    other = "set GONGQING_HOME to a folder of your own" if path.is_relative_to(home) else "name another one"
    return StorageDenied(
        f"no access to a file or folder: {words}",
        where=path,
        hint=f"mount it for writing, or give it to the user who runs this (its owner and mode); or {other}",
    )


def _broken(words: str, path: Path) -> StorageBroken:
    return StorageBroken(
        f"the device fails: {words}",
        where=path,
        hint="look at the disk and the system's log; gongqing doctor reads every table again",
    )


def _space(path: Path) -> os.statvfs_result:
    return os.statvfs(next(one for one in (path, *path.absolute().parents) if one.exists()))


def _is_full(path: Path) -> bool:
    room = _space(path)
    return room.f_bavail * room.f_frsize < _HARDLY_ROOM or (room.f_files > 0 and room.f_favail == 0)


def _room(path: Path) -> str:
    room = _space(path)
    free = f"{room.f_bavail * room.f_frsize / 1e6:.1f} MB free"
    return f"{free}, and no file can be added" if room.f_files and not room.f_favail else free


@contextlib.contextmanager
def held(path: Path, *, wait: bool = True, shared: bool = False) -> Iterator[IO[str]]:
    """Hold the lock of a file, made if it is missing; gives the open file, for a note of who holds it.

    Several may hold it `shared`. Raises BlockingIOError where another holds it and `wait` is false.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        yield file
