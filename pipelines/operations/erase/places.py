"""Where rows lie in a home: journals of crawls, versions of its tables, shards of its releases, rows of its runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipelines.core.home import Home
from pipelines.operations.erase.crawled import journals
from pipelines.operations.erase.sieve import DROPPED
from pipelines.store.store import Store, Version
from pipelines.train.recipe import recipe
from pipelines.train.runs import DATA, note, runs
from schemas.tables import PARTITIONED, TABLES


@dataclass(frozen=True)
class Place:
    """Rows of a table, kept or dropped (then `table` ends with DROPPED). `name` tells it from all others."""

    table: str
    name: str
    rows: pl.LazyFrame

    @property
    def columns(self) -> list[str]:
        """Of the rows, as they were written: an older version may have others than its table has now."""
        return self.rows.collect_schema().names()


def places(home: Path, store: Store) -> Iterator[Place]:
    """All places, what is made from others after them. Raises DamagedVersion: who knows what is in such a one?"""
    for name, posts in journals(home):
        yield Place("raw_posts", name, posts.lazy())
    for table in TABLES:
        for version in versions(store, table):
            name = f"{version.name}@{version.version}"
            where = (table, version.version, version.partition)
            yield Place(table, name, store.read(*where))
            yield Place(table + DROPPED, name, store.read_dropped(*where))
        for shard in (*shards(home, table), *rows_of_runs(home, table)):
            rows = pl.scan_parquet(shard, hive_partitioning=False)
            yield Place(table, str(shard.relative_to(home)), rows)


def versions(store: Store, table: str) -> Iterator[Version]:
    """Every version of a table, of all its partitions."""
    for partition in store.partitions(table) if table in PARTITIONED else [None]:
        for version in store.version_ids(table, partition):
            yield store.version(table, version, partition)


def shards(home: Path, table: str) -> list[Path]:
    """The files of a table in all releases of the home."""
    return sorted(Home(home).releases.glob(f"*/{table}/*.parquet"))


def rows_of_runs(home: Path, table: str) -> list[Path]:
    """The files of a table that runs of training chose or changed for themselves."""
    files = (path for run in runs(home) for path in sorted((run / DATA).glob("*.parquet")))
    return [path for path in files if recipe(note(path.parent.parent)["recipe"]).rows == table]
