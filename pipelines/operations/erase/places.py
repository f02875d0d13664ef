"""Where rows lie in a home: journals of crawls, versions of its tables, shards of its releases, data of its runs."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.core.home import Home
from pipelines.core.spill import ROWS_AT_ONCE, spilled
from pipelines.errors import DamagedRelease
from pipelines.operations.erase.documents import Lost, Published
from pipelines.operations.erase.rows import DROPPED, RowFilter
from pipelines.operations.erase.traces import Scrub, rewrite, scrub_file
from pipelines.release.publish.fetch import FETCHING
from pipelines.store.chunks import of_part, part_of
from pipelines.store.manifest import MANIFEST, Chunk
from pipelines.store.object_storage import ObjectStorage
from pipelines.store.releases import COPIES, Releases, publications
from pipelines.store.store import Store, Version
from pipelines.train.recipe import load_recipe
from pipelines.train.runs import DATA, list_runs, read_note
from schemas.tables import TABLES

# Of a line of a journal: which post it is, and everything that somebody wrote in it.
_POST = dict.fromkeys(("post_id", "url", "title", "description", "topic", "author"), pl.String)
_ANSWER = dict.fromkeys(("answer_id", "author", "text"), pl.String)


class Place(NamedTuple):
    """Some rows of a table as they were written, kept or dropped (then `table` ends with DROPPED), and the names of all
    places that hold just these: versions, shards, journals.
    """

    table: str
    names: tuple[str, ...]
    rows: pl.LazyFrame


class Places:
    """All rows of a home, ROWS_AT_ONCE at a time: derived rows after their sources, what several versions have once.

    May be gone through several times. Raises DamagedVersion: nobody knows what such a version holds.
    """

    def __init__(self, home: Path, store: Store) -> None:
        self._home, self._store = home, store
        self._versions = {table: list(versions(store, table)) for table in TABLES}
        for version in chain.from_iterable(self._versions.values()):
            store.check(version)
        released = _folders(Releases(home))
        self._shards = {
            table: [*sorted(Home(home).releases.glob(f"{released}/{table}/*.parquet")), *run_data(home, table)]
            for table in TABLES
        }

    def __iter__(self) -> Iterator[Place]:
        return chain.from_iterable(map(self.of, TABLES))

    def of(self, table: str) -> Iterator[Place]:
        """Those of a table."""
        if table == "raw_posts":
            for name, posts in _journals(self._home):
                yield Place(table, (name,), posts.lazy())
        yield from self._of_versions(table)
        for shard in self._shards[table]:
            place = Place(table, (str(shard.relative_to(self._home)),), pl.scan_parquet(shard, hive_partitioning=False))
            yield from _in_parts(place, pq.read_metadata(shard).num_rows)

    def versions(self, table: str) -> Iterator[pl.DataFrame]:
        """The rows of each version of a table, on the disk."""
        for version in self._versions[table]:
            chunks = of_part(version.manifest.files, "rows")
            rows = (self._store.read_chunk(version, chunk).collect() for chunk in chunks)
            yield spilled(rows, self._store.storage.scratch())

    def _of_versions(self, table: str) -> Iterator[Place]:
        holders: dict[tuple[str, str], list[tuple[Version, Chunk]]] = {}
        for version in self._versions[table]:
            for chunk in (chunk for chunk in version.manifest.files if chunk.rows):
                holders.setdefault((part_of(chunk), chunk.sha256), []).append((version, chunk))
        together: dict[tuple[str, tuple[str, ...]], list[tuple[Version, Chunk]]] = {}
        for (part, _), held in holders.items():
            names = tuple(f"{version.name}@{version.version}" for version, _ in held)
            together.setdefault((part, names), []).append(held[0])
        for (part, names), chunks in together.items():
            for some in _batches(chunks):
                rows = pl.concat([self._store.read_chunk(*one) for one in some])
                place = Place(table if part == "rows" else table + DROPPED, names, rows)
                yield from _in_parts(place, sum(chunk.rows for _, chunk in some))


def _in_parts(place: Place, n_rows: int) -> Iterator[Place]:
    """Its rows, ROWS_AT_ONCE at a time."""
    return (place._replace(rows=place.rows.slice(at, ROWS_AT_ONCE)) for at in range(0, n_rows, ROWS_AT_ONCE))


def _batches(chunks: list[tuple[Version, Chunk]]) -> Iterator[list[tuple[Version, Chunk]]]:
    """Chunks of ROWS_AT_ONCE rows together, or one that has more."""
    some, n_rows = list[tuple[Version, Chunk]](), 0
    for one in chunks:
        if some and n_rows + one[1].rows > ROWS_AT_ONCE:
            yield some
            some, n_rows = [], 0
        some.append(one)
        n_rows += one[1].rows
    yield some


def _folders(releases: Releases) -> str:
    """The pattern of the folders of releases; of those in a bucket, of their copies, which are made whole now."""
    if not isinstance(releases.storage, ObjectStorage):
        return "[!.]*"
    for name in releases.names():
        releases.folder(name)
    return f"{COPIES}/*"


def versions(store: Store, table: str) -> Iterator[Version]:
    """Every version of a table, of all its partitions."""
    for partition in store.places(table):
        for version in store.version_ids(table, partition):
            yield store.version(table, version, partition)


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


def _journals(home: Path) -> Iterator[tuple[str, pl.DataFrame]]:
    """The name of each journal of a crawl and the posts in it, which stand in no table until they are collected. A line
    that a killed crawl left unfinished is no post; nor is a damaged one.
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


_REMOVAL = (
    "make a new release and export it; then delete the tag {tag} and squash the history of {repo} (huggingface_hub: "
    "HfApi().delete_tag, HfApi().super_squash_history): a new commit alone leaves the rows in the old one, {commit}"
)


def erase_from_releases(
    home: Path, row_filter: RowFilter, scrub: Scrub, erasure: str
) -> Iterator[tuple[Lost, list[Published]]]:
    """What each release that loses rows has lost, and where on the Hub they still are. Called again, it finishes.

    The manifest is written after the shards: a release that a kill left in between counts as damaged until the erasure
    is finished. Raises DamagedRelease where a shard has been removed meanwhile.
    """
    releases, folder = Releases(home), Home(home).releases
    releases.storage.sweep()
    for unfinished in (FETCHING, COPIES):
        shutil.rmtree(folder / unfinished, ignore_errors=True)
    for path in sorted(folder.glob(f"{_folders(releases)}/{MANIFEST}")):
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        changed = sum(
            erase_from_file(shard, table, row_filter)
            for table in TABLES
            for shard in sorted(path.parent.glob(f"{table}/*.parquet"))
        )
        lost = _update_manifest(path.parent, manifest, changed, erasure)
        for other in sorted(path.parent.rglob("*")):
            if other.is_file() and other.suffix in {".md", ".json", ".jsonl", ".csv"} and other != path:
                scrub_file(other, scrub)
        clean = json.loads(scrub(json.dumps(manifest)))
        if lost is not None or clean != manifest:
            rewrite(path, (json.dumps(clean, ensure_ascii=False, indent=1) + "\n").encode())
        releases.put_back(path.parent.name)
        if lost is not None:
            yield lost, list(_published(home, path.parent.name))


def _update_manifest(folder: Path, manifest: dict[str, Any], changed: int, erasure: str) -> Lost | None:
    """Writes what the shards are now into the manifest, with a tombstone; None where nothing was lost."""
    tombstones = manifest.setdefault("erasures", [])
    known = next((one for one in tombstones if one["erasure"] == erasure), None)
    rows = 0
    for shard in (shard for listed in manifest["configs"].values() for shard in listed):
        content = _bytes_of(folder / shard["path"])
        digest = hashlib.sha256(content).hexdigest()
        if digest != shard["sha256"]:
            left = pq.read_metadata(folder / shard["path"]).num_rows
            rows, changed = rows + shard["rows"] - left, changed or 1
            shard |= {"rows": left, "bytes": len(content), "sha256": digest}
    if known is None and (rows or changed):
        known = {"erasure": erasure, "rows": rows, "changed": changed}
        tombstones.append(known)
    if not tombstones:
        del manifest["erasures"]
    return known and Lost(f"releases/{folder.name}", known["rows"], 0, known["changed"])


def _bytes_of(shard: Path) -> bytes:
    try:
        return shard.read_bytes()
    except FileNotFoundError as error:
        raise DamagedRelease(
            "a file of a release is gone since the erasure was begun",
            where=shard,
            hint="restore it, or move the release out of the home; then: gongqing erase --resume",
        ) from error


def _published(home: Path, release: str) -> Iterator[Published]:
    """Where a release was put on the Hub, as its exports noted it."""
    for noted in publications(home):
        if noted.tag == release:
            where = noted.model_dump(include={"repo", "commit", "tag"})
            yield Published(release=release, removal=_REMOVAL.format(**where), **where)
