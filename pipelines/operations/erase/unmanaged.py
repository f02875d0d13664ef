"""Unmanaged files in a home: exports, recordings, notebooks. An erasure names them and never touches them."""

import io
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from pipelines.core.home import Home
from pipelines.operations.erase.scrub import Scrub
from pipelines.operations.erase.traces import unescape

_PACKED = (b"PAR1", b"PK\x03\x04", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"SQLite format 3")
_HEAD = 4096  # bytes: where none of them is 0 a file is a text


def unmanaged_traces(home: Path, scrub: Scrub) -> list[str]:
    """The texts, tables, archives and databases that hold a trace, relative to the home; no pictures, no weights."""
    at = Home(home)
    managed = {at.data, at.releases, at.training, at.crawl, at.erasures, at.takedown}
    return sorted(
        str(path.relative_to(home))
        for path in _files(home, managed, at.ledger.name)
        if _readable(path) and any(scrub(text) != text for text in _texts(path.read_bytes()))
    )


def _readable(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return head.startswith(_PACKED) or b"\0" not in head


def _files(folder: Path, managed: Collection[Path] = (), ledger: str | None = None) -> Iterator[Path]:
    """All below a folder; in the home itself without what the erasure covers, and without the ledger and its logs."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path in managed or (ledger and path.name.startswith(ledger)):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _files(path)
        elif path.is_file():
            yield path


def _texts(content: bytes) -> Iterator[str]:
    """The texts of a file, unpacked."""
    try:
        if content[:4] == b"PAR1":
            for batch in pq.ParquetFile(io.BytesIO(content)).iter_batches():
                yield unescape(pl.DataFrame(pl.from_arrow(batch)).write_ndjson().encode())
        elif content[:4] == b"PK\x03\x04":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for name in archive.namelist():
                    yield from _texts(archive.read(name))
        elif content[:2] == b"\x1f\x8b":
            yield from _texts(zlib.decompress(content, wbits=31))
        elif content[:4] == b"\x28\xb5\x2f\xfd":
            with zstandard.ZstdDecompressor().stream_reader(content) as packed:
                yield from _texts(packed.read())
        else:
            yield unescape(content)
    except (pa.ArrowException, zipfile.BadZipFile, zlib.error, zstandard.ZstdError):
        yield unescape(content)
