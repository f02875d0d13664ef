"""Rows leave the releases of a home, whose manifests record it; the receipt names what is on the Hub."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.core.home import Home
from pipelines.errors import DamagedRelease
from pipelines.operations.erase.databases import scrub_file
from pipelines.operations.erase.documents import Lost, Published
from pipelines.operations.erase.places import erase_from_file, rewrite, shards
from pipelines.operations.erase.rows import RowFilter
from pipelines.operations.erase.scrub import Scrub
from pipelines.release.publish.fetch import FETCHING
from pipelines.release.publish.published import publications
from pipelines.store.storage import LocalFolder
from schemas.tables import TABLES

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
    folder = Home(home).releases
    if folder.is_dir():
        with LocalFolder(folder).staging():
            pass  # sweeps what killed processes left half written
        shutil.rmtree(folder / FETCHING, ignore_errors=True)
    for path in sorted(folder.glob("[!.]*/manifest.json")):
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        of_release = [
            (shard, table) for table in TABLES for shard in shards(home, table) if path.parent in shard.parents
        ]
        changed = sum(erase_from_file(shard, table, row_filter) for shard, table in of_release)
        lost = _update_manifest(path.parent, manifest, changed, erasure)
        for other in sorted(path.parent.rglob("*")):
            if other.is_file() and other.suffix in {".md", ".json", ".jsonl", ".csv"} and other != path:
                scrub_file(other, scrub)
        clean = json.loads(scrub(json.dumps(manifest)))
        if lost is not None or clean != manifest:
            rewrite(path, (json.dumps(clean, ensure_ascii=False, indent=1) + "\n").encode())
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
    for where in publications(home):
        if where.tag == release:
            removal = _REMOVAL.format(repo=where.repo, commit=where.commit, tag=where.tag)
            yield Published(release=release, repo=where.repo, commit=where.commit, tag=where.tag, removal=removal)
