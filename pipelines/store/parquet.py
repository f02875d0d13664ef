"""Rows as files: the Parquet of versions and releases, and the hash of rows that names a version.

The same rows give the same bytes: by key, no time of writing, one compression, row groups of one size.
"""

import hashlib
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.core.files import sha256_of
from pipelines.store.manifest import File
from pipelines.store.release_manifest import Shard
from schemas.labels import SPLITS
from schemas.table import Dropped, Table, to_arrow

SHARD_ROWS = 100_000
_ROWS_AT_ONCE = 20_000  # in a row group, and of what is hashed


def write_parquet(folder: Path, path: str, frame: pl.DataFrame, schema: pa.Schema) -> File:
    """Write a frame as `path` below a folder, in the columns of a schema."""
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for start in range(0, frame.height, _ROWS_AT_ONCE):
            writer.write_table(to_arrow(_gathered(frame, start, _ROWS_AT_ONCE), schema))
    return File(path=path, rows=frame.height, bytes=target.stat().st_size, sha256=sha256_of(target))


def version_of(table: type[Table], name: str, kept: pl.DataFrame, dropped: pl.DataFrame) -> str:
    """16 hex digits; both frames must be in the order of their keys.

    Rows are hashed as NDJSON with the columns in order of name, not as file bytes: a new release of the Parquet
    writer changes bytes, never rows.
    """
    hashed = hashlib.sha256()
    for label, schema, frame in ((name, table, kept), ("dropped", Dropped, dropped)):
        types = [f"{field.name}:{field.type}" for field in schema.arrow_schema()]
        hashed.update(f"{label}/{schema.version}/{'|'.join(sorted(types))}/{frame.height}\n".encode())
        for rows in frame.select(sorted(frame.columns)).iter_slices(_ROWS_AT_ONCE):
            hashed.update(rows.write_ndjson().encode())
    return hashed.hexdigest()[:16]


def write_shards(folder: Path, config: str, table: type[Table], rows: pl.DataFrame) -> list[Shard]:
    """Write rows of a table, in any order, below the folder of a release, as the Hub lays them out:
    `<config>/<split>-00000-of-0000N.parquet`. A split without rows has no file.
    """
    ordered = rows.sort(table.key())
    written = []
    for split in SPLITS:
        of_split = ordered.filter(pl.col("split") == split)
        shards = -(-of_split.height // SHARD_ROWS)
        for number in range(shards):
            path = f"{config}/{split}-{number:05d}-of-{shards:05d}.parquet"
            part = _gathered(of_split, number * SHARD_ROWS, SHARD_ROWS)
            file = write_parquet(folder, path, part, table.arrow_schema())
            written.append(Shard(split=split, **file.model_dump()))
    return written


def _gathered(frame: pl.DataFrame, start: int, most: int) -> pl.DataFrame:
    """Some rows, not sliced: a slice of a list carries all its elements along, and 2 GiB of text are too many."""
    return frame.select(pl.all().gather(pl.int_range(start, min(start + most, frame.height))))
