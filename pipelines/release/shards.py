"""The Parquet files of a release: `<config>/<split>-00000-of-0000N.parquet`, as the Hub lays them out.

The same rows give the same bytes: rows by key, no time of writing, one compression, row groups of one size.
"""

from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from pipelines.core.files import sha256_of
from pipelines.store.release_manifest import Shard
from schemas.labels import SPLITS
from schemas.table import Table, to_arrow

SHARD_ROWS = 100_000
_ROW_GROUP = 20_000


def write_shards(folder: Path, config: str, table: type[Table], rows: pl.DataFrame) -> list[Shard]:
    """Write the rows of a config below `folder`, a split after the other; a split without rows has no file.

    Args:
        folder: Of the release.
        config: The name of the table.
        table: Its schema: `split` is one of its columns.
        rows: Its rows, in any order.
    """
    ordered = rows.sort(table.key())
    written = []
    for split in SPLITS:
        of_split = ordered.filter(pl.col("split") == split)
        shards = -(-of_split.height // SHARD_ROWS)
        for number in range(shards):
            path = f"{config}/{split}-{number:05d}-of-{shards:05d}.parquet"
            part = _rows(of_split, number * SHARD_ROWS, SHARD_ROWS)
            _write(folder / path, part, table)
            written.append(_shard(folder, path, split, part.height))
    return written


def _write(path: Path, rows: pl.DataFrame, table: type[Table]) -> None:
    path.parent.mkdir(exist_ok=True)
    with pq.ParquetWriter(path, table.arrow_schema(), compression="zstd") as writer:
        for start in range(0, rows.height, _ROW_GROUP):
            writer.write_table(to_arrow(_rows(rows, start, _ROW_GROUP), table))


def _rows(frame: pl.DataFrame, start: int, most: int) -> pl.DataFrame:
    """Gathered, not sliced: a slice of a list carries all its elements along, and 2 GiB of text are too many."""
    return frame.select(pl.all().gather(pl.int_range(start, min(start + most, frame.height))))


def _shard(folder: Path, path: str, split: str, rows: int) -> Shard:
    target = folder / path
    return Shard(path=path, split=split, rows=rows, bytes=target.stat().st_size, sha256=sha256_of(target))
