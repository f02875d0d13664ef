"""Whether files are what was written: of the size, the bytes and the rows that a manifest says."""

from typing import Protocol

import polars as pl

from pipelines.store.storage import Storage


class Written(Protocol):
    """What a manifest says of a Parquet file."""

    @property
    def rows(self) -> int:
        """Its rows."""

    @property
    def bytes(self) -> int:
        """Its size."""

    @property
    def sha256(self) -> str:
        """Of its bytes, in hex."""


class Verified:
    """Remembers which files were found right, so that each is read once per process, as long as it stays as it is."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._right: dict[str, tuple[Written, tuple[int, int]]] = {}

    def fault(self, key: str, written: Written) -> str | None:
        """What is wrong with the file under a key, in words for an error; None where nothing is."""
        status = self._storage.stat(key)
        if status is None:
            return "a file is missing"
        if self._right.get(key) == (written, status):
            return None
        if status[0] != written.bytes:
            return f"a file has {status[0]:,} bytes and should have {written.bytes:,}"
        if self._storage.sha256(key) != written.sha256:
            return "a file's bytes are not those that were written"
        found = pl.scan_parquet(self._storage.uri(key)).select(pl.len()).collect().item()
        if found != written.rows:
            return f"a file holds {found:,} rows and should hold {written.rows:,}"
        self._right[key] = (written, status)
        return None

    def clear(self) -> None:
        """Forget them all: every file is to be read again."""
        self._right.clear()
