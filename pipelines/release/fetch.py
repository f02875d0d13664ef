"""A release back from the Hub: the folder that was published, found to be what its manifest says."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ValidationError

from pipelines.errors import HubError, RequestError
from pipelines.kept_out import KeptOut
from pipelines.release.client import Told, hub_client, hub_errors, nobody
from pipelines.release.manifest import Release
from pipelines.release.public import sha256_of
from pipelines.release.releases import MANIFEST, Releases, name_is_taken, require_name
from schemas.ids import digest
from schemas.labels import SPLITS
from schemas.tables import TABLES

_MARKS = re.compile(r"[#/~]")  # what stands between an id and a part of it
_SHARD = re.compile(rf"({'|'.join(TABLES)})/({'|'.join(SPLITS)})-[0-9]{{5}}-of-[0-9]{{5}}\.parquet")
FETCHING = ".fetching"  # in the folder of releases: what has arrived of those that are not whole


def fetch(releases: Releases, repo: str, revision: str = "main", *, told: Told = nobody) -> Release:
    """Make a release of the home out of one on the Hub; where it is there already, nothing is fetched.

    Files are fetched one after the other and checked against the manifest; those that have arrived stay until all have,
    so a fetch that was broken off goes on.

    Args:
        releases: Of the home.
        repo: `owner/name`.
        revision: A tag, a branch or a commit.
        told: Is told of bytes that have arrived, and of all.

    Raises:
        HubError: The Hub refuses, cannot be reached, or holds something else than the manifest says.
        RequestError: The home has a release of this name with other content, or rows of this one were erased here.
    """
    api = hub_client(anonymous=True)
    with hub_errors("reading the data set", repo):
        commit = api.dataset_info(repo, revision=revision).sha
    staged = Path(releases.storage.uri(FETCHING)) / digest(f"{repo}@{commit}")
    staged.mkdir(parents=True, exist_ok=True)
    release = read_manifest(_fetched(api, repo, MANIFEST, commit, staged), repo)
    if release.name in releases:
        if releases.read(release.name).content != release.content:
            raise name_is_taken(release.name)
        shutil.rmtree(staged)
        return releases.read(release.name)
    shards = [shard for shards in release.configs.values() for shard in shards]
    done = 0
    for shard in shards:
        path = _fetched(api, repo, shard.path, commit, staged)
        if sha256_of(path) != shard.sha256:
            path.unlink()
            raise HubError(
                f"{shard.path} is not what the manifest says", where=repo, remedy="run the same command again"
            )
        done += shard.bytes
        told(done, sum(shard.bytes for shard in shards))
    shutil.rmtree(staged / ".cache", ignore_errors=True)  # the client's notes on what has arrived
    kept_out = KeptOut(Path(releases.storage.uri("")).parent)
    if erased := sum(_erased(staged / shard.path, kept_out) for shard in shards):
        shutil.rmtree(staged)
        raise RequestError(
            f"the release has {erased:,} rows of what was erased here",
            where=f"{repo}@{release.name}",
            remedy="take it off the Hub as the receipt of the erasure says, and export a new release",
        )
    return releases.publish(staged, release)


def _erased(shard: Path, kept_out: KeptOut) -> int:
    """How many rows are of what was erased, by any of their ids: one of a part begins with that of the whole."""
    rows = pl.read_parquet(shard, hive_partitioning=False)
    named = [name for name in rows.columns if name.endswith(("_id", "_ids")) or name == "made_from"]
    return sum(
        any(whole in kept_out for one in row for row_id in _listed(one) for whole in _wholes(row_id))
        for row in rows.select(named).iter_rows()
    )


def _listed(ids: str | list[str] | None) -> list[str]:
    return [ids] if isinstance(ids, str) else ids or []


def _wholes(row_id: str) -> Iterator[str]:
    """An id, and those that it may be a part of."""
    yield row_id
    yield from (row_id[: mark.start()] for mark in _MARKS.finditer(row_id))


def _fetched(api: Any, repo: str, path: str, commit: str, folder: Path) -> Path:
    with hub_errors(f"fetching {path}", repo):
        return Path(api.hf_hub_download(repo, path, revision=commit, local_dir=folder, repo_type="dataset"))


def read_manifest(path: Path, repo: str) -> Release:
    """The manifest, once it is found to name nothing that lies outside a release. Raises HubError, RequestError."""
    try:
        release = Release.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise HubError(
            "its manifest is none of a release", where=repo, remedy="name a revision that gongqing published"
        ) from error
    require_name(release.name)
    for config, shards in release.configs.items():
        for shard in shards:
            if not _SHARD.fullmatch(shard.path) or not shard.path.startswith(f"{config}/"):
                raise HubError(f"its manifest names a file {shard.path!r}", where=repo, remedy="do not trust this one")
    return release
