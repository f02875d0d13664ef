"""A release back from the Hub: the folder that was published, checked against its manifest."""

import re
import shutil
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from pipelines.core.files import sha256_of
from pipelines.core.home import Home
from pipelines.errors import HubError, RequestError
from pipelines.release.publish.client import Progress, hub_client, hub_errors, require_repo
from pipelines.release.publish.public import WITHHELD
from pipelines.store.manifest import MANIFEST
from pipelines.store.parquet import SHARD_ROWS
from pipelines.store.release_manifest import Release, Shard
from pipelines.store.releases import Releases, name_is_taken, require_name
from pipelines.store.suppression import SuppressionList
from pipelines.text.strings import strings
from schemas.ids import digest
from schemas.labels import SPLITS
from schemas.tables import TABLES

_MARKS = re.compile(r"[#/~]")  # what stands between an id and a part of it
_SHARD = re.compile(rf"({'|'.join(TABLES)})/({'|'.join(SPLITS)})-[0-9]{{5}}-of-[0-9]{{5}}\.parquet")
FETCHING = ".fetching"  # in the folder of releases: what has arrived of those that are not whole
_COLUMNS = {"row_id": pa.string(), "split": pa.string(), WITHHELD: pa.bool_()}
_ROWS_AT_ONCE = 16
_MOST_TIMES, _LEAST_BYTES = 1_000, 2**26  # what rows may unfold to; of ours at most 50 times a file was seen


def fetch(releases: Releases, repo: str, revision: str = "main", progress: Progress | None = None) -> Release:
    """Make a release of the home out of one on the Hub; where it is there already, nothing is fetched.

    Files are fetched one after the other and checked against the manifest; those that have arrived stay until all have,
    so that a fetch that broke off goes on. `revision` is a tag, a branch or a commit.

    Raises HubError where the Hub refuses, or holds something else than the manifest says; RequestError where the home
    has a release of this name with other content, or rows of this one were erased here.
    """
    require_repo(repo)
    api = hub_client(anonymous=True)
    with hub_errors("reading the data set", repo):
        commit = api.dataset_info(repo, revision=revision).sha
    staged = Home(releases.home).releases / FETCHING / digest(f"{repo}@{commit}")
    staged.mkdir(parents=True, exist_ok=True)
    release = read_manifest(_download(api, repo, MANIFEST, commit, staged), repo)
    if release.name in releases:
        if releases.read(release.name).content != release.content:
            raise name_is_taken(release.name)
        shutil.rmtree(staged)
        return releases.read(release.name)
    shards = release.shards
    done = 0
    for shard in shards:
        path = _download(api, repo, shard.path, commit, staged)
        if sha256_of(path) != shard.sha256:
            path.unlink()
            raise HubError(f"{shard.path} is not what the manifest says", where=repo, hint="run the same command again")
        require_rows(path, shard, repo)
        done += shard.bytes
        if progress:
            progress(done, sum(shard.bytes for shard in shards))
    shutil.rmtree(staged / ".cache", ignore_errors=True)  # the client's notes on what has arrived
    suppression = SuppressionList(releases.home)
    if erased := sum(_erased(staged / shard.path, suppression) for shard in shards):
        shutil.rmtree(staged)
        raise RequestError(
            f"the release has {erased:,} rows of what was erased here",
            where=f"{repo}@{release.name}",
            hint="take it off the Hub as the receipt of the erasure says, and export a new release",
        )
    made = releases.publish(staged, release)
    shutil.rmtree(staged, ignore_errors=True)  # it went up to a bucket, or was renamed
    return made


def _erased(shard: Path, suppression: SuppressionList) -> int:
    """How many rows are of what was erased, by any of their ids: one of a part begins with that of the whole."""
    rows = pl.read_parquet(shard, hive_partitioning=False)
    names = [name for name in rows.columns if name.endswith(("_id", "_ids")) or name == "made_from"]
    ids = {row_id for row in rows.select(names).iter_rows() for row_id in strings(list(row))}
    ends = {row_id: [len(row_id), *(mark.start() for mark in _MARKS.finditer(row_id))] for row_id in ids}
    erased = {row_id for row_id in ids if any(row_id[:end] in suppression for end in ends[row_id])}
    return sum(not erased.isdisjoint(strings(list(row))) for row in rows.select(names).iter_rows())


def _download(api: Any, repo: str, path: str, commit: str, folder: Path) -> Path:
    with hub_errors(f"fetching {path}", repo):
        return Path(api.hf_hub_download(repo, path, revision=commit, local_dir=folder, repo_type="dataset"))


def read_manifest(path: Path, repo: str) -> Release:
    """The manifest, if it names nothing outside a release. Raises HubError, RequestError."""
    try:
        release = Release.model_validate_json(path.read_bytes())
    except ValidationError as error:
        if unknown := [one["loc"][-1] for one in error.errors() if one["type"] == "extra_forbidden"]:
            what = f"its manifest says what this version does not know: {', '.join(map(str, unknown[:5]))}"
            raise HubError(what, where=repo, hint="a newer gongqing published it: use that one") from error
        hint = "name a revision that gongqing published"
        raise HubError("its manifest is not that of a release", where=repo, hint=hint) from error
    require_name(release.name)
    for config, shards in release.configs.items():
        for shard in shards:
            if not _SHARD.fullmatch(shard.path) or not shard.path.startswith(f"{config}/"):
                raise HubError(f"its manifest names a file {shard.path!r}", where=repo, hint="do not trust this one")
    return release


def require_rows(path: Path, shard: Shard, repo: str) -> None:
    """Raises HubError for a shard that is no Parquet with the columns of a publication, has other rows than the
    manifest says, or unfolds to far more than texts do.
    """
    most = _LEAST_BYTES + _MOST_TIMES * path.stat().st_size
    try:
        with pq.ParquetFile(path) as file:
            missing = [name for name, kind in _COLUMNS.items() if kind not in _kinds(file.schema_arrow, name)]
            if missing:
                raise _wrong(f"{shard.path} lacks the columns {', '.join(missing)}", repo)
            footer = file.metadata
            if footer.num_rows != shard.rows or footer.num_rows > SHARD_ROWS:
                raise _wrong(f"{shard.path} has {footer.num_rows:,} rows, its manifest says {shard.rows:,}", repo)
            groups = map(footer.row_group, range(footer.num_row_groups))
            is_small = sum(group.total_byte_size for group in groups) <= most
            # The footer may lie: the rows are counted as they are read, and no further than is allowed.
            sizes = accumulate(batch.nbytes for batch in file.iter_batches(_ROWS_AT_ONCE))
            if not is_small or any(size > most for size in sizes):
                raise _wrong(f"{shard.path} unfolds to more than {_MOST_TIMES:,} times its size", repo)
    except (pa.ArrowException, OSError) as error:
        raise _wrong(f"{shard.path} is no readable Parquet", repo) from error


def _kinds(schema: pa.Schema, name: str) -> list[pa.DataType]:
    return [schema.field(place).type for place in schema.get_all_field_indices(name)]


def _wrong(what: str, repo: str) -> HubError:
    return HubError(what, where=repo, hint="do not trust this one")
