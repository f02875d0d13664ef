"""The files of an import, and their texts: one file, a folder, a tar or a zip. Nothing is ever unpacked to disk.

All sizes are counted during unpacking: an archive may hold thousands of times what it weighs. One file at a time is in
memory with its text, or small ones of _HELD together: less than 10 GiB at the bounds below, and the rows kept on top.
"""

import codecs
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from pipelines.errors import UnreadableFile

MAX_FILE_BYTES = 1 << 30  # of one file, unpacked
MAX_BYTES = 4 << 30  # of all files of an import, unpacked
MAX_FILES = 1_000_000
MAX_PASSED = 16 << 30  # of all other files of a tar, unpacked: they are read, and passed over

_LONGEST_HEADER = 8 << 10  # of a name or the like beside a file of a tar: it is parsed in the square of its length
_HELD = 256 << 20  # bytes of a tar that are held to be sorted
_PIECE = 1 << 20

_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)
_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
ARCHIVES = (*_TAR, ".zip")


Member = tuple[str, bytes]  # its name within the import, and its content


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
        name = path.name.lower()
        if path.is_dir():
            names = (file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
            for each in sorted(each for each in names if _wanted(each, suffixes)):
                yield _file(path / each, each, reading)
        elif name.endswith(_TAR):
            yield from _tar(path, suffixes, reading)
        elif name.endswith(".zip"):
            yield from _zip(path, suffixes, reading)
        else:
            yield _file(path, path.name, reading)
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


@dataclass(slots=True)
class _Reading:
    """How much an import has read so far. Its methods raise UnreadableFile for more than the bounds."""

    path: Path
    total: int = 0
    files: int = 0

    def data(self, name: str, stream: IO[bytes]) -> bytes:
        """The content of a file, a .gz unpacked."""
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

    def require(self, name: str, size: int, total: int) -> None:
        """Checks the size of one file, and of all together."""
        require_size(str(self.path) if name == self.path.name else f"{self.path}: {name}", size)
        if total > MAX_BYTES:
            raise _too_large(self.path, "unpacked, all files together hold", _gib(MAX_BYTES))

    def _counted(self, name: str, stream: IO[bytes]) -> Iterator[bytes]:
        size = 0
        while piece := stream.read(_PIECE):
            size += len(piece)
            self.total += len(piece)
            self.require(name, size, self.total)
            yield piece


def _file(path: Path, name: str, reading: _Reading) -> Member:
    with path.open("rb") as stream:
        return _unzipped(name), reading.data(name, stream)


def _tar(path: Path, suffixes: tuple[str, ...], reading: "_Reading") -> Iterator[Member]:
    """A compressed tar can only be read forwards, in its own order: it is measured first, and then read again part by
    part of those that come next by name.
    """
    sizes: list[tuple[str, int, int]] = []  # name, place and size
    for place, (name, stream) in enumerate(_entries(path, suffixes, reading)):
        sizes.append((_unzipped(name), place, sum(map(len, reading.pieces(name, stream)))))
    part: list[int] = []
    total = 0
    for _, place, size in sorted(sizes):
        if part and total + size > _HELD:
            yield from _read_part(path, suffixes, part)
            part, total = [], 0
        part.append(place)
        total += size
    if part:
        yield from _read_part(path, suffixes, part)


def _read_part(path: Path, suffixes: tuple[str, ...], part: list[int]) -> Iterator[Member]:
    reading = _Reading(path)
    held: dict[int, Member] = {}
    for place, (name, stream) in enumerate(_entries(path, suffixes, reading)):
        if place in part:
            held[place] = _unzipped(name), reading.data(name, stream)
        if len(held) == len(part):
            break
    for place in part:
        yield held.pop(place)


def _entries(path: Path, suffixes: tuple[str, ...], reading: _Reading) -> Iterator[tuple[str, IO[bytes]]]:
    """The files of a tar to read, by name, in its own order."""
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
                    raise _too_large(path, "unpacked, its other files hold", _gib(MAX_PASSED))
                continue
            reading.require(entry.name, entry.size, 0)
            yield entry.name, cast("IO[bytes]", archive.extractfile(entry))


class _Entry(tarfile.TarInfo):
    """An entry of a tar whose long names and extended headers are bounded before they are read."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        long = (*(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE), *tarfile.GNU_TYPES)
        if self.type in long and self.type != tarfile.GNUTYPE_SPARSE and self.size > _LONGEST_HEADER:
            raise tarfile.ReadError("a header too long for a name")
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]


def _zip(path: Path, suffixes: tuple[str, ...], reading: _Reading) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir() and _wanted(entry.filename, suffixes)]
        total = 0
        for entry in entries:
            if entry.flag_bits & 1:
                where = f"{path}: {entry.filename}"
                raise UnreadableFile("the file is encrypted", where=where, hint="unpack it first")
            total += entry.file_size
            reading.require(entry.filename, entry.file_size, total)
        for entry in sorted(entries, key=lambda entry: entry.filename):
            with archive.open(entry) as stream:
                yield _unzipped(entry.filename), reading.data(entry.filename, stream)


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
        hint="check what it is; import what you need of it in parts, each under its own name",
    )


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.3g} GiB"


def _wanted(name: str, suffixes: tuple[str, ...]) -> bool:
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith((".", "__MACOSX")) and part not in (".", "..") for part in parts)
    return not hidden and name.lower().removesuffix(".gz").endswith(suffixes)


# Texts. A byte-order mark decides; then strict UTF-8. What is neither is decoded, strictly, as each encoding that
# Chinese files come in, and judged by the share of the language's most frequent characters: about 0.3 in the right
# encoding and under 0.05 in the wrong one. That a decoder accepts a file says little: GB 18030 accepts nearly any Big5.

_CANDIDATES = ("gb18030", "big5hkscs", "utf-16-le", "utf-16-be")

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_FREQUENT = frozenset(
    "，。！？：；“”、「」的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里"
    "所去行过家十用发天如然作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从知使想什因很给情让问题候"
    "感觉啊吗呢吧這為來個們說國時於對裡過發無麼經當與學進種將還見沒從給讓問題覺嗎她它但被把或並并該该最更已比做"
)
_SAMPLE = 1 << 16
_MIN_SHARE = 0.1  # a text of Chinese has about 0.3
_MARGIN = 2.0  # the best must be this many times the next


def decode(data: bytes, *, where: object, stated: str | None = None) -> tuple[str, str]:
    """The text of a whole file, and its encoding: the `stated` one where it is known, and no other is tried.

    Raises UnreadableFile for bytes in no known encoding or in several alike; it names the first bad byte and `where`.
    """
    if stated is not None:
        is_utf8 = stated.lower().replace("-", "").replace("_", "") == "utf8"
        return _strictly(data, "utf-8-sig" if is_utf8 else stated, where)
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _strictly(data, encoding, where)
    wide = _wide_ascii(data[:_SAMPLE])
    if wide is not None:
        return _strictly(data, wide, where)
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        if _mostly_utf8(data):
            raise _refused("the file is UTF-8 with a damaged byte", error, data, where) from error
        return _chinese(data, error, where)


def _strictly(data: bytes, encoding: str, where: object) -> tuple[str, str]:
    try:
        return data.decode(encoding), encoding
    except LookupError as error:
        raise UnreadableFile(f"there is no encoding {encoding!r}", where=where, hint="name another") from error
    except UnicodeDecodeError as error:
        raise _refused(f"the file is not {encoding}, as stated", error, data, where) from error


def _wide_ascii(sample: bytes) -> str | None:
    """UTF-16 without a mark that holds mostly ASCII: to UTF-8 a file with every second byte zero."""
    if sample.count(0) * 4 < len(sample) or not sample:
        return None
    return "utf-16-be" if sample[::2].count(0) > sample[1::2].count(0) else "utf-16-le"


def _mostly_utf8(data: bytes) -> bool:
    text = data.decode("utf-8", "replace")
    damaged = text.count("\N{REPLACEMENT CHARACTER}")
    return sum(not char.isascii() for char in text) - damaged > 10 * damaged


def _chinese(data: bytes, error: UnicodeDecodeError, where: object) -> tuple[str, str]:
    shares = {encoding: _frequent_share(data[:_SAMPLE], encoding) for encoding in _CANDIDATES}
    best, second, *_ = sorted(shares, key=lambda encoding: -shares[encoding])
    if shares[best] < _MIN_SHARE or shares[best] < _MARGIN * shares[second]:
        able = ", ".join(encoding for encoding in _CANDIDATES if shares[encoding] > 0) or "none"
        what = f"the file is not UTF-8, and no other encoding stands out (candidates: {able})"
        raise _refused(what, error, data, where)
    return _strictly(data, best, where)


def _frequent_share(sample: bytes, encoding: str) -> float:
    """Share of frequent Chinese characters among those beyond ASCII; 0 where `encoding` cannot be."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample, final=False)
    except UnicodeDecodeError:
        return 0.0
    beyond_ascii = [char for char in text if not char.isascii()]
    return sum(char in _FREQUENT for char in beyond_ascii) / max(1, len(beyond_ascii))


def _refused(what: str, error: UnicodeDecodeError, data: bytes, where: object) -> UnreadableFile:
    offset = error.start + len(data) - len(error.object)  # a codec counts from behind the mark that it took off
    return UnreadableFile(
        f"{what}; byte {offset} (from 0) is the first that does not fit",
        where=where,
        hint="convert it to UTF-8 (iconv -f ENCODING -t UTF-8), or state `encoding` in a mapping file",
    )
