"""The files of an import: one file, a folder, a tar or a zip. Nothing is ever unpacked to disk.

Whatever packs them, sizes are those of what comes out, counted while it does: an archive may hold thousands of times as
much as it weighs. One file at a time is in memory, or small ones of _HELD together. With its text, of four bytes a
character at most, once or twice, that is less than 10 GiB at the bounds below; what is kept of it comes on top.
"""

import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast

from pipelines.errors import UnreadableFile

MAX_FILE_BYTES = 1 << 30  # of one file, unpacked
MAX_BYTES = 4 << 30  # of all files of an import, unpacked
MAX_FILES = 1_000_000
MAX_PASSED = 16 << 30  # of all files of a tar that are none of a data set, unpacked: they are read, and passed over

_LONGEST_HEADER = 8 << 10  # of a name or the like beside a file of a tar: it is parsed in the square of its length
_HELD = 256 << 20  # bytes of a tar that are held to be sorted
_PIECE = 1 << 20

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
    Raises UnreadableFile for a path that is missing, unreadable, damaged, empty of such files, or absurdly large: one
    file of more than MAX_FILE_BYTES, all of more than MAX_BYTES, or more than MAX_FILES of them.
    """
    if not path.exists():
        raise UnreadableFile("there is no such file or folder", where=path, hint="check the path")
    try:
        reading = _Reading(path)
        yield from _members(path, suffixes, reading)  # which holds none of them
    except NotImplementedError as error:
        raise UnreadableFile(
            "the archive is packed by a method that cannot be read here", where=path, hint="unpack it first"
        ) from error
    except _DAMAGED as error:
        raise UnreadableFile(
            f"the file is damaged or cut short ({type(error).__name__})", where=path, hint="fetch it again"
        ) from error
    except OSError as error:
        raise UnreadableFile(f"the file cannot be read ({error.strerror})", where=error.filename or path) from error
    if not reading.files:
        raise UnreadableFile(f"no file here ends in {' or '.join(suffixes)}", where=path, hint="check the path")


def _members(path: Path, suffixes: tuple[str, ...], reading: "_Reading") -> Iterator[Member]:
    name = path.name.lower()
    if path.is_dir():
        yield from _folder(path, suffixes, reading)
    elif name.endswith(_TAR):
        yield from _tar(path, suffixes, reading)
    elif name.endswith(".zip"):
        yield from _zip(path, suffixes, reading)
    else:
        yield _file(path, path.name, reading)


@dataclass(slots=True)
class _Reading:
    """How much an import has read so far, and how much more it may. All of its methods raise UnreadableFile."""

    path: Path
    total: int = 0
    files: int = 0

    def data(self, name: str, stream: IO[bytes]) -> bytes:
        """What a file holds; of a .gz what is packed in it."""
        return b"".join(self.pieces(name, stream))

    def pieces(self, name: str, stream: IO[bytes]) -> Iterator[bytes]:
        """The same, piece by piece."""
        self.files += 1
        if self.files > MAX_FILES:
            raise _too_large(self.path, "it holds", f"{MAX_FILES:,} files")
        if name.lower().endswith(".gz"):
            with gzip.open(stream) as unzipped:
                yield from self._counted(name, cast("IO[bytes]", unzipped))
        else:
            yield from self._counted(name, stream)

    def require(self, name: str, size: int) -> None:
        """For a file of this size."""
        require_size(str(self.path) if name == self.path.name else f"{self.path}: {name}", size)

    def require_all(self, size: int) -> None:
        """For files of this size together."""
        if size > MAX_BYTES:
            raise _too_large(self.path, "unpacked, all files together hold", _gib(MAX_BYTES))

    def _counted(self, name: str, stream: IO[bytes]) -> Iterator[bytes]:
        size = 0
        while piece := stream.read(_PIECE):
            size += len(piece)
            self.total += len(piece)
            self.require(name, size)
            self.require_all(self.total)
            yield piece


def _folder(path: Path, suffixes: tuple[str, ...], reading: _Reading) -> Iterator[Member]:
    names = (file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    for name in sorted(name for name in names if _wanted(name, suffixes)):
        yield _file(path / name, name, reading)


def _file(path: Path, name: str, reading: _Reading) -> Member:
    with path.open("rb") as stream:
        return Member(_unzipped(name), reading.data(name, stream))


def _tar(path: Path, suffixes: tuple[str, ...], reading: _Reading) -> Iterator[Member]:
    """A compressed tar can only be read forwards, in its own order. What is small is held until all of it can be
    sorted; what is not is measured, and read again part by part.
    """
    held: list[Member] = []
    found: list[tuple[str, int, int]] = []  # name, place and size
    for place, (name, stream) in enumerate(_entries(path, suffixes, reading)):
        size, pieces = 0, []
        for piece in reading.pieces(name, stream):
            size += len(piece)
            pieces.append(piece)
            if reading.total > _HELD:
                held.clear()
                pieces.clear()
        found.append((_unzipped(name), place, size))
        if reading.total <= _HELD:
            held.append(Member(_unzipped(name), b"".join(pieces)))
    if reading.total > _HELD:
        for part in _parts(sorted(found)):
            yield from _read_again(path, suffixes, part)
        return
    held.sort(reverse=True)
    while held:
        yield held.pop()


def _parts(found: Sequence[tuple[str, int, int]]) -> Iterator[list[int]]:
    """The places of files, in parts of _HELD bytes at most, or of one file."""
    part: list[int] = []
    total = 0
    for _, place, size in found:
        if part and total + size > _HELD:
            yield part
            part, total = [], 0
        part.append(place)
        total += size
    yield part


def _read_again(path: Path, suffixes: tuple[str, ...], part: list[int]) -> Iterator[Member]:
    reading = _Reading(path)
    wanted, last = frozenset(part), max(part)
    held: dict[int, Member] = {}
    for place, (name, stream) in enumerate(_entries(path, suffixes, reading)):
        if place in wanted:
            held[place] = Member(_unzipped(name), reading.data(name, stream))
        if place == last:
            break
    for place in part:
        yield held.pop(place)


def _entries(path: Path, suffixes: tuple[str, ...], reading: _Reading) -> Iterator[tuple[str, IO[bytes]]]:
    """The files of a tar that are wanted, by name, in its own order."""
    entries = passed = 0
    with tarfile.open(path, tarinfo=_Entry) as archive:
        while (entry := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined]  # it would remember each
            entries += 1
            if entries > MAX_FILES:
                raise _too_large(path, "it holds", f"{MAX_FILES:,} files")
            if not entry.isfile() or not _wanted(entry.name, suffixes):
                passed += entry.size
                if passed > MAX_PASSED:
                    raise _too_large(path, "unpacked, files that are none of a data set hold", _gib(MAX_PASSED))
                continue
            reading.require(entry.name, entry.size)
            stream = archive.extractfile(entry)
            if stream is not None:
                yield entry.name, stream


class _Entry(tarfile.TarInfo):
    """An entry of a tar whose long names and extended headers are bounded before they are read."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        long = (*(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE), *tarfile.GNU_TYPES)
        if self.type in long and self.type != tarfile.GNUTYPE_SPARSE and self.size > _LONGEST_HEADER:
            raise tarfile.ReadError("a header of a size that no name has")
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]


def _zip(path: Path, suffixes: tuple[str, ...], reading: _Reading) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir() and _wanted(entry.filename, suffixes)]
        for entry in entries:
            if entry.flag_bits & 1:
                where = f"{path}: {entry.filename}"
                raise UnreadableFile("the file is encrypted", where=where, hint="unpack it first")
            reading.require(entry.filename, entry.file_size)
        reading.require_all(sum(entry.file_size for entry in entries))
        for entry in sorted(entries, key=lambda entry: entry.filename):
            with archive.open(entry) as stream:
                yield Member(_unzipped(entry.filename), reading.data(entry.filename, stream))


def _unzipped(name: str) -> str:
    return name[:-3] if name.lower().endswith(".gz") else name


def require_size(name: str, size: int) -> None:
    """Raises UnreadableFile for a file that says that it holds more than MAX_FILE_BYTES."""
    if size > MAX_FILE_BYTES:
        raise _too_large(name, "unpacked, the file holds", _gib(MAX_FILE_BYTES))


def _too_large(where: object, what: str, most: str) -> UnreadableFile:
    return UnreadableFile(
        f"absurdly large: {what} more than {most}",
        where=where,
        hint="look at what it is; what of it you want, import in parts, each under a name of its own",
    )


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.3g} GiB"


def _wanted(name: str, suffixes: tuple[str, ...]) -> bool:
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith((".", "__MACOSX")) and part not in (".", "..") for part in parts)
    return not hidden and name.lower().removesuffix(".gz").endswith(suffixes)
