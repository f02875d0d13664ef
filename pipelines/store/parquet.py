"""Parquet as it is written everywhere: the same rows give the same bytes, in row groups of one size."""

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.core.files import sha256_of
from pipelines.store.manifest import File
from schemas.table import to_arrow

_ROW_GROUP = 20_000


def write_parquet(folder: Path, path: str, frame: pl.DataFrame, schema: pa.Schema) -> File:
    """Write a frame as `path` below a folder, in the columns of a schema."""
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for start in range(0, frame.height, _ROW_GROUP):
            writer.write_table(to_arrow(gathered(frame, start, _ROW_GROUP), schema))
    return File(path=path, rows=frame.height, bytes=target.stat().st_size, sha256=sha256_of(target))


def gathered(frame: pl.DataFrame, start: int, most: int) -> pl.DataFrame:
    """Some rows, not sliced: a slice of a list carries all its elements along, and 2 GiB of text are too many."""
    return frame.select(pl.all().gather(pl.int_range(start, min(start + most, frame.height))))
