"""Where rows lie in a home: journals of crawls, versions of its tables, shards of its releases, data of its runs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.operations.erase.rows import DROPPED, RowFilter
from pipelines.store.store import Store, Version
from pipelines.train.recipe import load_recipe
from pipelines.train.runs import DATA, list_runs, read_note
from schemas.tables import PARTITIONED, TABLES

# Of a line of a journal: which post it is, and everything that somebody wrote in it.
_POST = dict.fromkeys(("post_id", "url", "title", "description", "topic", "author"), pl.String)
_ANSWER = dict.fromkeys(("answer_id", "author", "text"), pl.String)


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
    """All places, derived rows after their sources. Raises DamagedVersion: nobody knows what such a version holds."""
    for name, posts in _journals(home):
        yield Place("raw_posts", name, posts.lazy())
    for table in TABLES:
        for version in versions(store, table):
            name = f"{version.name}@{version.version}"
            where = (table, version.version, version.partition)
            yield Place(table, name, store.read(*where))
            yield Place(table + DROPPED, name, store.read_dropped(*where))
        for shard in (*shards(home, table), *run_data(home, table)):
            yield Place(table, str(shard.relative_to(home)), pl.scan_parquet(shard, hive_partitioning=False))


def versions(store: Store, table: str) -> Iterator[Version]:
    """Every version of a table, of all its partitions."""
    for partition in store.partitions(table) if table in PARTITIONED else [None]:
        for version in store.version_ids(table, partition):
            yield store.version(table, version, partition)


def shards(home: Path, table: str) -> list[Path]:
    """The files of a table in all releases of the home."""
    return sorted(Home(home).releases.glob(f"*/{table}/*.parquet"))


def run_data(home: Path, table: str) -> list[Path]:
    """The files of a table that runs of training chose or changed for themselves."""
    files = (path for run in list_runs(home) for path in sorted((run / DATA).glob("*.parquet")))
    return [path for path in files if load_recipe(read_note(path.parent.parent)["recipe"]).rows == table]


def erase_from_file(path: Path, table: str, row_filter: RowFilter) -> int:
    """Rewrites a Parquet file without what goes, where it holds some; how many of its rows lost a part."""
    before = pl.read_parquet(path, hive_partitioning=False)
    after, changed = row_filter.split(table, before)
    if changed or after.height < before.height:
        sink = pa.BufferOutputStream()
        pq.write_table(after.to_arrow().cast(pq.read_schema(path)), sink, compression="zstd")
        rewrite(path, sink.getvalue().to_pybytes())
    return changed


def rewrite(path: Path, content: bytes) -> None:
    """Replaces a file at once; it keeps its mode."""
    mode = path.stat().st_mode
    write_whole(path, content)
    path.chmod(mode)


def _journals(home: Path) -> Iterator[tuple[str, pl.DataFrame]]:
    """The name of each journal of a crawl and the posts in it, which stand in no table until they are collected.

    A line that a killed crawl left unfinished is no post; nor is a damaged one.
    """
    for path in sorted(Home(home).crawl.glob("*/*/*/items.jsonl")):
        posts = [post for line in path.read_bytes().splitlines() if (post := _post(line))]
        yield str(path.relative_to(home)), pl.DataFrame(posts, schema=_POST | {"answers": pl.List(pl.Struct(_ANSWER))})


def _post(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line.decode("utf-8", "replace"))
        answers = [{name: answer.get(name) for name in _ANSWER} for answer in row.get("answers", [])]
        return {name: row.get(name) for name in _POST} | {"post_id": row["post_id"], "answers": answers}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
