"""A search of every byte below a folder, of whatever is packed in it as well."""

import json
import re
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import zstandard

RUN = 8


def documents(folder: Path) -> Iterator[tuple[Path, str]]:
    """All that can be read below a folder: bytes as they are, and whatever can be unpacked from them."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            yield path, _plain(content)
            if path.suffix == ".parquet":
                yield path, json.dumps(pq.read_table(path).to_pylist(), ensure_ascii=False, default=str)
            for found in re.finditer(rb"\x28\xb5\x2f\xfd|\x1f\x8b\x08", content):  # zstd, gzip
                yield path, _unpacked(content[found.start() :], 31)
            if content.startswith(b"SQLite format 3\0"):
                yield from ((path, cell) for cell in _cells(path))


def _plain(content: bytes) -> str:
    text = content.decode("utf-8", "ignore")
    return text + re.sub(r"\\+u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), text)


def _unpacked(content: bytes, window: int = zlib.MAX_WBITS) -> str:
    """As much as there is before it goes wrong."""
    is_zstd = content.startswith(b"\x28\xb5\x2f\xfd")
    unpacker = zstandard.ZstdDecompressor().decompressobj() if is_zstd else zlib.decompressobj(window)
    try:
        return _plain(unpacker.decompress(content[: 1 << 22]))
    except (zstandard.ZstdError, zlib.error):
        return ""


def _cells(path: Path) -> Iterator[str]:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in database.execute(f'SELECT * FROM "{table}"'):
                for cell in row:
                    if isinstance(cell, bytes):
                        yield _unpacked(cell)
    database.close()


def runs(texts: Iterator[str] | list[str]) -> set[str]:
    """All runs of RUN characters of some texts."""
    return {text[at : at + RUN] for text in texts for at in range(len(text) - RUN + 1)}


def strings(value: Any) -> Iterator[str]:
    """All strings in a value of lists and dicts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)


def traces(folder: Path, wanted: set[str]) -> dict[str, list[str]]:
    """The files below a folder that hold one of the wanted runs, with some of these."""
    found: dict[str, set[str]] = {}
    for path, text in documents(folder):
        met = wanted & runs([text])
        if met:
            found.setdefault(str(path.relative_to(folder)), set()).update(met)
    return {path: sorted(met)[:5] for path, met in found.items()}
