"""Releases of a home are rid of rows, and their manifests say so; what of them is on the Hub is told."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.errors import DamagedRelease
from pipelines.operations.erase.databases import scrub_file
from pipelines.operations.erase.places import shards
from pipelines.operations.erase.receipt import Lost, Published
from pipelines.operations.erase.scrub import Scrub
from pipelines.operations.erase.sieve import Sieve
from pipelines.release.publish.fetch import FETCHING
from pipelines.release.publish.published import publications
from pipelines.store.storage import LocalFolder
from schemas.tables import TABLES

_REMOVAL = (
    "make a new release and export it; then delete the tag {tag} and squash the history of {repo} (huggingface_hub: "
    "HfApi().delete_tag, HfApi().super_squash_history): a new commit alone leaves the rows in the old one, {commit}"
)


def erase_from_releases(home: Path, sieve: Sieve, scrub: Scrub, erasure: str) -> Iterator[tuple[Lost, list[Published]]]:
    """What each release that loses rows has lost, and where on the Hub they still are. Again, it finishes.

    The manifest is written after the shards: a release that was left in between is damaged until the erasure is
    finished, and says so. Raises DamagedRelease where a shard has been removed meanwhile.
    """
    if Home(home).releases.is_dir():
        with LocalFolder(Home(home).releases).staging():
            pass  # what a release that was killed left half written may hold it as well
        shutil.rmtree(
            Home(home).releases / FETCHING, ignore_errors=True
        )  # and what a fetch that was broken off has left
    for path in sorted(Home(home).releases.glob("[!.]*/manifest.json")):
        folder = path.parent
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        changed = sum(
            erase_from_shard(shard, table, sieve) for table in TABLES for shard in shards(home, table)
            if shard.is_relative_to(folder)
        )  # fmt: skip
        lost = _settle(folder, manifest, changed, erasure)
        for other in sorted(folder.rglob("*")):
            if other.is_file() and other.suffix in {".md", ".json", ".jsonl", ".csv"} and other != path:
                scrub_file(other, scrub)
        clean = scrub(json.dumps(manifest))
        if lost is not None or json.loads(clean) != manifest:
            content = json.dumps(json.loads(clean), ensure_ascii=False, indent=1) + "\n"
            mode = path.stat().st_mode
            write_whole(path, content.encode())
            path.chmod(mode)
        if lost is not None:
            yield lost, list(_published(home, folder.name))


def erase_from_shard(path: Path, table: str, sieve: Sieve) -> int:
    """Writes a shard without what goes, where it holds some; how many of its rows lost a part."""
    before = pl.read_parquet(path, hive_partitioning=False)
    after, changed = sieve.left(table, before)
    if changed or after.height < before.height:
        schema = pq.read_schema(path)
        sink = pa.BufferOutputStream()
        pq.write_table(after.to_arrow().cast(schema), sink, compression="zstd")
        mode = path.stat().st_mode
        write_whole(path, sink.getvalue().to_pybytes())
        path.chmod(mode)
    return changed


def _settle(folder: Path, manifest: dict[str, Any], changed: int, erasure: str) -> Lost | None:
    """Puts what the shards are now into the manifest, with a tombstone; None where nothing was lost."""
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
    for where in publications(home):
        if where.tag == release:
            removal = _REMOVAL.format(repo=where.repo, commit=where.commit, tag=where.tag)
            yield Published(release=release, repo=where.repo, commit=where.commit, tag=where.tag, removal=removal)
