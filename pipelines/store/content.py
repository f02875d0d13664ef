"""The version of a table is its content: a hash of the logical rows kept and dropped, and of the schema."""

import hashlib
from typing import Protocol

import polars as pl

from schemas.table import Dropped, Table

_ROWS_AT_ONCE = 20_000


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...


def version_of(table: type[Table], name: str, kept: pl.DataFrame, dropped: pl.DataFrame) -> str:
    """16 hex digits; both frames must be in the order of their keys.

    Rows are hashed as NDJSON with the columns in order of name, not as file bytes: a new release of the Parquet
    writer changes bytes, never rows.
    """
    hashed = hashlib.sha256()
    for label, schema, frame in ((name, table, kept), ("dropped", Dropped, dropped)):
        types = [f"{field.name}:{field.type}" for field in schema.arrow_schema()]
        hashed.update(f"{label}/{schema.version}/{'|'.join(sorted(types))}/{frame.height}\n".encode())
        _update(hashed, frame)
    return hashed.hexdigest()[:16]


def _update(hashed: _Hash, frame: pl.DataFrame) -> None:
    ordered = frame.select(sorted(frame.columns))
    for start in range(0, ordered.height, _ROWS_AT_ONCE):
        hashed.update(ordered.slice(start, _ROWS_AT_ONCE).write_ndjson().encode())
