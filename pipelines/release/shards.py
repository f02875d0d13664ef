"""The Parquet files of a release: `<config>/<split>-00000-of-0000N.parquet`, as the Hub lays them out.

The same rows give the same bytes: rows by key, no time of writing, one compression, row groups of one size.
"""

from pathlib import Path

import polars as pl

from pipelines.store.parquet import gathered, write_parquet
from pipelines.store.release_manifest import Shard
from schemas.labels import SPLITS
from schemas.table import Table

SHARD_ROWS = 100_000


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
            part = gathered(of_split, number * SHARD_ROWS, SHARD_ROWS)
            file = write_parquet(folder, path, part, table.arrow_schema())
            written.append(Shard(split=split, **file.model_dump()))
    return written
