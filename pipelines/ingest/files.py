"""The files of an import: one file, a folder, a tar or a zip. Nothing is ever unpacked to disk."""

import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from pipelines.errors import UnreadableFile

MAX_MEMBER_BYTES = 1 << 30  # of one compressed file
MAX_ARCHIVE_BYTES = 4 << 30  # of all files of a tar together: it is read once, in its own order

_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)
_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
ARCHIVES = (*_TAR, ".zip")


class Member(NamedTuple):
    """A file by its name within what was given."""

    name: str
    data: bytes


def members(path: Path, suffixes: tuple[str, ...]) -> Iterator[Member]:
    """The files at `path`, sorted by name; `.gz` files are decompressed and named without their `.gz`.

    In a folder or an archive only files that end in one of `suffixes` count, hidden ones never.
    Raises UnreadableFile for a path that is missing, unreadable, damaged, empty of such files, or absurdly large.
    """
    if not path.exists():
        raise UnreadableFile("there is no such file or folder", where=path, remedy="check the path")
    try:
        nothing = True
        for member in _members(path, suffixes):
            nothing = False
            yield member
    except _DAMAGED as error:
        raise UnreadableFile(
            f"the file is damaged or cut short ({type(error).__name__})", where=path, remedy="fetch it again"
        ) from error
    except OSError as error:
        raise UnreadableFile(f"the file cannot be read ({error.strerror})", where=error.filename or path) from error
    if nothing:
        raise UnreadableFile(f"no file here ends in {' or '.join(suffixes)}", where=path, remedy="check the path")


def _members(path: Path, suffixes: tuple[str, ...]) -> Iterator[Member]:
    name = path.name.lower()
    if path.is_dir():
        yield from _folder(path, suffixes)
    elif name.endswith(_TAR):
        yield from _tar(path, suffixes)
    elif name.endswith(".zip"):
        yield from _zip(path, suffixes)
    else:
        yield _file(path, path.name)


def _folder(path: Path, suffixes: tuple[str, ...]) -> Iterator[Member]:
    names = (file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    for name in sorted(name for name in names if _wanted(name, suffixes)):
        yield _file(path / name, name)


def _file(path: Path, name: str) -> Member:
    if not name.lower().endswith(".gz"):
        return Member(name, path.read_bytes())
    with gzip.open(path) as stream:
        return Member(name[:-3], _bounded(stream, path))


def _tar(path: Path, suffixes: tuple[str, ...]) -> Iterator[Member]:
    # A compressed tar can only be read forwards: all is read in the archive's order, then sorted.
    found: list[Member] = []
    total = 0
    with tarfile.open(path) as archive:
        for entry in archive:
            if not entry.isfile() or not _wanted(entry.name, suffixes):
                continue
            total += entry.size
            if entry.size > MAX_MEMBER_BYTES or total > MAX_ARCHIVE_BYTES:
                raise _too_large(f"{path}: {entry.name}")
            stream = archive.extractfile(entry)
            if stream is not None:
                found.append(_unzipped(entry.name, stream, path))
    yield from sorted(found)


def _zip(path: Path, suffixes: tuple[str, ...]) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for entry in sorted(archive.infolist(), key=lambda entry: entry.filename):
            if entry.is_dir() or not _wanted(entry.filename, suffixes):
                continue
            where = f"{path}: {entry.filename}"
            if entry.flag_bits & 1:
                raise UnreadableFile("the file is encrypted", where=where, remedy="unpack it first")
            if entry.file_size > MAX_MEMBER_BYTES:
                raise _too_large(where)
            with archive.open(entry) as stream:
                yield _unzipped(entry.filename, stream, path)


def _unzipped(name: str, stream: IO[bytes], path: Path) -> Member:
    where = f"{path}: {name}"
    if not name.lower().endswith(".gz"):
        return Member(name, _bounded(stream, where))
    with gzip.open(stream) as unzipped:
        return Member(name[:-3], _bounded(unzipped, where))


def _bounded(stream: IO[bytes] | gzip.GzipFile, where: object) -> bytes:
    data = stream.read(MAX_MEMBER_BYTES + 1)
    if len(data) > MAX_MEMBER_BYTES:
        raise _too_large(where)
    return data


def _too_large(where: object) -> UnreadableFile:
    return UnreadableFile("the file is absurdly large once unpacked", where=where, remedy="unpack it first, and look")


def _wanted(name: str, suffixes: tuple[str, ...]) -> bool:
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith((".", "__MACOSX")) and part not in (".", "..") for part in parts)
    return not hidden and name.lower().removesuffix(".gz").endswith(suffixes)
