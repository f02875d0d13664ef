"""Whether files are what was written: of the size, the bytes and the rows that a manifest says."""

import polars as pl

from pipelines.store.manifest import File
from pipelines.store.storage import Storage


class Verified:
    """Remembers the files that were right, so that each is read once per process, as long as it stays as it is."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._right: dict[str, tuple[File, tuple[int, int]]] = {}

    def fault(self, key: str, written: File) -> str | None:
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
        rows = pl.scan_parquet(self._storage.uri(key)).select(pl.len()).collect().item()
        if rows != written.rows:
            return f"a file holds {rows:,} rows and should hold {written.rows:,}"
        self._right[key] = (written, status)
        return None

    def clear(self) -> None:
        """Every file is to be read again."""
        self._right.clear()
