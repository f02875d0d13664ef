"""The releases of a home, the pointer to the current one, and where they were published.

::

    <home>/releases/current.json                                 the pointer
    <home>/releases/<name>/manifest.json
    <home>/releases/<name>/<config>/<split>-00000-of-0000N.parquet

or the same below `releases/` of a bucket (`pipelines.store.object_storage`), with copies in the home for who reads
files: `<home>/releases/.copies/<name>`. Where releases were published is noted in the home in any case.

A release is built in a scratch folder, made durable, and published at once, so a folder that is there is whole. It is
never changed afterwards; the pointer may be moved back. These files are for the owner of the home alone: they may hold
what people wrote and allowed nobody to publish.
"""

import datetime as dt
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.core.files import sha256_of, write_whole
from pipelines.core.home import Home
from pipelines.errors import DamagedRelease, RequestError, UnknownName
from pipelines.store.manifest import MANIFEST
from pipelines.store.object_storage import ObjectStorage, storage_of
from pipelines.store.release_manifest import Release
from pipelines.store.storage import Verified
from schemas.dropped import Row

COPIES = ".copies"  # in the folder of releases: the files of those that lie in a bucket
ROWS_AT_ONCE = 2_000
_POINTER = "current.json"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
# No tag of git, or what stands beside the releases.
_TAKEN = re.compile(rf".*(?:\.\..*|\.|\.lock)|{re.escape(_POINTER)}")


class _Pointer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str


class Releases:
    """The releases of a home, in it or in the bucket that its settings name. Several processes may use it at once."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.storage = storage_of(Home(home).releases)
        self._verified = Verified(self.storage)

    # Reading

    def names(self) -> list[str]:
        """The names of all releases, oldest first; those whose manifest cannot be read come before the others."""
        return sorted(self._there(), key=lambda name: (self._age(name), name))

    def __contains__(self, name: str) -> bool:
        return name in self._there()

    def read(self, name: str) -> Release:
        """The manifest of a release, once its files are checked against it; each is read once per process.

        Raises UnknownName; DamagedRelease where a file is missing or another.
        """
        release = self._manifest(name)
        for shard in release.shards:
            key = self.storage.key(name, shard)
            if problem := self._verified.fault(key, shard):
                raise self._damaged(problem, key)
        return release

    def current(self) -> Release | None:
        """The release that the pointer names; None where there is none yet. Raises DamagedRelease."""
        content = self.storage.get(_POINTER)
        if content is None:
            return None
        try:
            pointer = _Pointer.model_validate_json(content)
        except ValidationError as error:
            raise self._lost("the pointer to the current release cannot be read") from error
        if pointer.name not in self:
            raise self._lost(f"the pointer names {pointer.name}, and there is no such release any more")
        return self.read(pointer.name)

    def folder(self, name: str) -> Path:
        """Where the files of a release lie: of one in a bucket, of its copy in the home, which is made whole first.

        Raises UnknownName; for a copy DamagedRelease.
        """
        if name not in self:
            raise UnknownName("release", name, self.names())
        if not isinstance(self.storage, ObjectStorage):
            return self.storage.root / name
        copy = self.storage.root / COPIES / name
        for shard in self._manifest(name).shards:
            path = copy / shard.path
            if not path.is_file() or sha256_of(path) != shard.sha256:
                with self.storage.staging() as staged:
                    self.storage.fetch(self.storage.key(name, shard), staged / path.name)
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    (staged / path.name).replace(path)
        write_whole(copy / MANIFEST, self.storage.get(f"{name}/{MANIFEST}") or b"")
        return copy

    def frame(self, name: str, config: str, split: str | None = None) -> pl.LazyFrame:
        """The rows of a config, or of one split of it, by key. Raises as `read` does, and UnknownName."""
        release = self.read(name)
        if config not in release.configs:
            raise UnknownName(f"config of {name}", config, release.configs)
        shards = release.configs[config]
        chosen = [self.storage.key(name, shard) for shard in shards if split in (None, shard.split)]
        if not chosen:
            raise UnknownName(f"split of {config}", str(split), dict.fromkeys(shard.split for shard in shards))
        return self.storage.scan(chosen)

    # Writing

    def staging(self) -> AbstractContextManager[Path]:
        """A new folder to build a release in, gone afterwards whatever happens."""
        return self.storage.staging()

    def publish(self, staged: Path, release: Release) -> Release:
        """Make a release of the shards in `staged`, all at once; its files are read-only from then on.

        Raises RequestError for a name that is none, or that another release has.
        """
        require_name(release.name)
        (staged / MANIFEST).write_bytes(release.to_bytes())
        for path in staged.rglob("*"):
            if path.is_file():
                path.chmod(0o400)
        self.storage.publish(staged, release.name, damaged=lambda: False)
        if self.read(release.name) != release:
            raise name_is_taken(release.name)
        return release

    def promote(self, name: str) -> Release:
        """Make a release the current one, an older one too. Raises as `read` does."""
        release = self.read(name)
        pointer = _Pointer(name=name).model_dump_json().encode() + b"\n"
        while not self.storage.swap(_POINTER, self.storage.get(_POINTER), pointer):
            pass
        return release

    def put_back(self, name: str) -> None:
        """Make a release what the files of its copy were changed to, and remove all that it had before.

        Killed, it leaves the release as it was or as it is now, perhaps with files that its manifest does not name.
        """
        if not isinstance(self.storage, ObjectStorage):
            return
        copy, manifest = self.storage.root / COPIES / name, f"{name}/{MANIFEST}"
        content = (copy / MANIFEST).read_bytes()
        keys = {
            self.storage.key(name, shard): copy / shard.path for shard in Release.model_validate_json(content).shards
        }
        for key, path in keys.items():
            if self.storage.stat(key) is None:
                self.storage.add(path, key)
        while not self.storage.swap(manifest, self.storage.get(manifest), content):
            pass
        for other in set(self.storage.files(name)) - {manifest, *keys}:
            self.storage.remove(other)

    # Names and checks

    def _there(self) -> list[str]:
        return [name for name in self.storage.published("") if _NAME.fullmatch(name)]

    def _manifest(self, name: str) -> Release:
        if name not in self:
            raise UnknownName("release", name, self.names())
        key = f"{name}/{MANIFEST}"
        try:
            release = Release.model_validate_json(self.storage.get(key) or b"")
        except ValidationError as error:
            raise self._damaged("the manifest of a release cannot be read", key) from error
        if release.name != name:
            raise self._damaged(f"the manifest speaks of {release.name}", key)
        return release

    def _age(self, name: str) -> float:
        try:
            return self._manifest(name).made_at.timestamp()
        except DamagedRelease:
            return 0.0

    def _lost(self, problem: str) -> DamagedRelease:
        there = ", ".join(self.names())
        known = f"choose one: gongqing releases promote NAME (there are: {there})" if there else "gongqing release NAME"
        return DamagedRelease(problem, where=self.storage.uri(_POINTER), hint=known)

    def _damaged(self, problem: str, key: str) -> DamagedRelease:
        return DamagedRelease(
            problem,
            where=self.storage.uri(key),
            hint="restore the folder from a backup or from the Hub, or move it away and release again",
        )


def require_name(name: str, what: str = "a release") -> None:
    """Raises RequestError for what cannot name a release, or something else: a folder has its name, and a tag on the
    Hub.
    """
    if not _NAME.fullmatch(name) or _TAKEN.fullmatch(name):
        raise RequestError(
            f"{name!r} cannot name {what}",
            hint="up to 64 small letters, figures, points, hyphens and underscores, a letter or figure first; "
            f"no two points together, no point and no .lock at the end, not {_POINTER}",
        )


def name_is_taken(name: str) -> RequestError:
    """The error where a release of this name is there and holds something else."""
    return RequestError(
        f"there is a release {name} already, and it holds something else",
        where="releases",
        hint="a release is never changed: choose another name",
    )


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of a shard, one after the other, without all of them in memory."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE):
            yield from batch.to_pylist()


# Where releases were published: a line of JSON for each upload, in their folder.
FILE = "published.jsonl"
UNKNOWN = "unknown"  # the commit of an upload that was begun


class Publication(BaseModel):
    """One upload of a release. `commit` is UNKNOWN where it was begun, and nobody noted its end."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repo: str
    tag: str
    commit: str
    at: dt.datetime = Field(default_factory=lambda: dt.datetime.now(dt.UTC))


def note_publication(home: Path, repo: str, tag: str, commit: str) -> None:
    """Note, once, where a release is published or will be."""
    if any((one.repo, one.tag, one.commit) == (repo, tag, commit) for one in _noted(home)):
        return
    path = Home(home).releases / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        # A crash may have cut the line before: it then ends here.
        cut = file.tell() > 0 and not path.read_bytes().endswith(b"\n")
        file.write(b"\n" * cut + Publication(repo=repo, tag=tag, commit=commit).model_dump_json().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def publications(home: Path) -> list[Publication]:
    """Every upload that was noted, oldest first; one that was begun counts until it has ended."""
    noted = _noted(home)
    ended = {(one.repo, one.tag) for one in noted if one.commit != UNKNOWN}
    return [one for one in noted if one.commit != UNKNOWN or (one.repo, one.tag) not in ended]


def _noted(home: Path) -> list[Publication]:
    """Every line but one that a crash cut off."""
    path = Home(home).releases / FILE
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [Publication.model_validate_json(line) for line in lines if line.endswith(b"}")]
