"""Rows as files: the Parquet of versions and releases, and the hash of rows that names a version.

The same rows give the same bytes: by key, no time of writing, one compression, row groups of one size.

A version is cut into chunks, each a file: where some rows change, the others keep their files and their hashes.
"""

import hashlib
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.core.files import sha256_of
from pipelines.store.manifest import Chunk, File
from pipelines.store.release_manifest import Shard
from schemas.labels import SPLITS
from schemas.table import Dropped, Table, to_arrow

SHARD_ROWS = 100_000
_ROWS_AT_ONCE = 20_000  # in a row group, and in a chunk
_CHUNK_ROWS = 2_048  # in a chunk, on the average: what is new touches as few as may be


def write_parquet(folder: Path, path: str, frame: pl.DataFrame, schema: pa.Schema) -> File:
    """Write a frame as `path` below a folder, in the columns of a schema."""
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for start in range(0, frame.height, _ROWS_AT_ONCE):
            writer.write_table(to_arrow(gathered(frame, start, _ROWS_AT_ONCE), schema))
    return File(path=path, rows=frame.height, bytes=target.stat().st_size, sha256=sha256_of(target))


class Cut(NamedTuple):
    """So many rows of a frame, from one on, and the hash of their content."""

    start: int
    rows: int
    content: str


def cut(frame: pl.DataFrame, key: list[str]) -> list[Cut]:
    """The chunks of a frame in the order of its key: one ends behind each row whose own key says so, or is full.

    So a row that comes or goes changes its own chunk, and hardly ever the next one. An empty frame is one chunk.
    """
    keys = frame.select(pl.concat_str(pl.col(key).cast(pl.String).fill_null(""), separator="\x1f")).to_series()
    ends = [0]
    for end, name in enumerate(keys, 1):
        if crc32(name.encode()) % _CHUNK_ROWS == 0 or end - ends[-1] == _ROWS_AT_ONCE:
            ends.append(end)
    if ends[-1] < frame.height or not frame.height:
        ends.append(frame.height)
    return [Cut(start, end - start, content_of(frame.slice(start, end - start))) for start, end in pairwise(ends)]


def content_of(rows: pl.DataFrame) -> str:
    """SHA-256 of the rows of a chunk, in hex.

    Rows are hashed as NDJSON with the columns in order of name, not as file bytes: a new release of the Parquet
    writer changes bytes, never rows.
    """
    return hashlib.sha256(rows.select(sorted(rows.columns)).write_ndjson().encode()).hexdigest()


def version_of(table: type[Table], name: str, kept: Iterable[Cut | Chunk], dropped: Iterable[Cut | Chunk]) -> str:
    """16 hex digits over the contents of the chunks, in their order, and the columns of the table."""
    hashed = hashlib.sha256()
    for label, schema, chunks in ((name, table, kept), ("dropped", Dropped, dropped)):
        contents = [f"{chunk.rows} {chunk.content}" for chunk in chunks]
        hashed.update("\n".join([f"{label}/{schema.version}/{_types(schema)}", *contents, ""]).encode())
    return hashed.hexdigest()[:16]


def canonical_hash(table: type[Table], name: str, kept: pl.DataFrame, dropped: pl.DataFrame) -> str:
    """16 hex digits over all rows in the order of their keys, however they are cut into chunks.

    It named the versions that were written before there were chunks.
    """
    hashed = hashlib.sha256()
    for label, schema, frame in ((name, table, kept), ("dropped", Dropped, dropped)):
        hashed.update(f"{label}/{schema.version}/{_types(schema)}/{frame.height}\n".encode())
        for rows in frame.sort(schema.key()).select(sorted(frame.columns)).iter_slices(_ROWS_AT_ONCE):
            hashed.update(rows.write_ndjson().encode())
    return hashed.hexdigest()[:16]


def _types(schema: type[Table]) -> str:
    return "|".join(sorted(f"{field.name}:{field.type}" for field in schema.arrow_schema()))


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
            part = gathered(of_split, number * SHARD_ROWS, SHARD_ROWS)
            file = write_parquet(folder, path, part, table.arrow_schema())
            written.append(Shard(split=split, **file.model_dump()))
    return written


def gathered(frame: pl.DataFrame, start: int, most: int) -> pl.DataFrame:
    """Some rows, not sliced: a slice of a list carries all its elements along, and 2 GiB of text are too many."""
    return frame.select(pl.all().gather(pl.int_range(start, min(start + most, frame.height))))
