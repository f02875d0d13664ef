"""Where versions are kept. The one place that knows of folders, renames and locks; buckets are
`pipelines.store.object_storage`'s.

Nothing outside these two modules assumes that a folder can be renamed.
"""

import contextlib
import os
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import polars as pl

from pipelines.core.files import full_disk_reported, held, sha256_of, sync
from pipelines.store.manifest import File

_SCRATCH = ".tmp"


class Storage(ABC):
    """Versions and pointers by key: a relative path with `/`. A key is whole or absent, never half there.

    What is being built, and what is read from files without a name, lies in the folder `root` on a local disk, whatever
    the storage.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """A new local folder to build a version in, gone afterwards whatever happens."""
        with full_disk_reported(self.root):
            folder = self._make_scratch() / uuid.uuid4().hex
            self._sweep(folder.parent)
            with _owned(folder.with_suffix(".lock")):
                try:
                    folder.mkdir()
                    yield folder
                finally:
                    shutil.rmtree(folder, ignore_errors=True)

    def _make_scratch(self) -> Path:
        """For its owner alone: raw tables hold what people wrote. To share a corpus, open it to a group."""
        self.root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root.mkdir(mode=0o700, exist_ok=True)
        (self.root / _SCRATCH).mkdir(exist_ok=True)
        return self.root / _SCRATCH

    def scratch(self) -> Path | None:
        """A folder for files without a name (`pipelines.core.spill`), for who only looks as well; None where nothing is
        written yet, or may be.
        """
        folder = self.root / _SCRATCH
        return folder if os.access(folder, os.W_OK | os.X_OK) else None

    @staticmethod
    def _sweep(scratch: Path) -> None:
        """Remove what processes that are no more left behind."""
        for lock_path in scratch.glob("*.lock"):
            with contextlib.suppress(FileNotFoundError, BlockingIOError), held(lock_path, wait=False):
                shutil.rmtree(lock_path.with_suffix(""), ignore_errors=True)
                lock_path.unlink()

    def sweep(self) -> None:
        """Remove what killed processes left half written."""
        self._sweep(self.root / _SCRATCH)

    @abstractmethod
    def key(self, prefix: str, file: File) -> str:
        """The key of a file that the manifest below `prefix` names."""

    @abstractmethod
    def publish(self, staged: Path, prefix: str, damaged: Callable[[], bool]) -> None:
        """Make all files of `staged`, its manifest among them, durable and readable under `prefix`, all at once.

        Where `prefix` is there already it stays, for it names its content, unless `damaged()` holds.
        """

    @abstractmethod
    def published(self, prefix: str) -> list[str]:
        """The names of what was published directly below `prefix`, sorted."""

    @abstractmethod
    def link(self, key: str, staged: Path) -> None:
        """Put what lies under `key` in a staging folder too, as cheaply as the storage can."""

    @abstractmethod
    def add(self, staged: Path, key: str) -> None:
        """Make the local file `staged` durable under `key`, in the place of what was there."""

    @abstractmethod
    def remove(self, key: str) -> None:
        """Nothing is under `key` any more."""

    @abstractmethod
    def discard(self, prefix: str) -> int:
        """Remove everything below `prefix`, all at once. The bytes that are free now: no other version has the file."""

    @abstractmethod
    def files(self, prefix: str) -> list[str]:
        """The keys of all files below `prefix`, sorted."""

    @abstractmethod
    def get(self, key: str) -> bytes | None:
        """The bytes under `key`, or None."""

    @abstractmethod
    def swap(self, key: str, old: bytes | None, new: bytes) -> bool:
        """Put `new` under `key` if it still holds `old` (None: nothing); durable when it returns True."""

    @abstractmethod
    def children(self, prefix: str) -> list[str]:
        """The names of the folders directly below `prefix`, sorted."""

    @abstractmethod
    def stat(self, key: str) -> tuple[int, int | str] | None:
        """Size in bytes and a mark that changes when the content does, or None."""

    @abstractmethod
    def sha256(self, key: str) -> str:
        """The SHA-256 of the bytes under `key`, in hex."""

    @abstractmethod
    def scan(self, keys: Iterable[str]) -> pl.LazyFrame:
        """The rows of the Parquet files under `keys`, one after the other."""

    @abstractmethod
    def uri(self, key: str) -> str:
        """The place of a key, for messages."""


class LocalFolder(Storage):
    """A folder on a local disk: what is published is renamed there, and what is there is whole."""

    def key(self, prefix: str, file: File) -> str:
        return f"{prefix}/{file.path}"

    def publish(self, staged: Path, prefix: str, damaged: Callable[[], bool]) -> None:
        target = self.root / prefix
        with full_disk_reported(self.root):
            for path in sorted(staged.rglob("*"), reverse=True):
                sync(path)
            sync(staged)
            with self._alone():
                if target.exists():
                    if not damaged():
                        return
                    with self.staging() as scratch:
                        target.rename(scratch / "damaged")
                _make_folders(target.parent, self.root)
                staged.rename(target)
                sync(target.parent)

    def published(self, prefix: str) -> list[str]:
        return self.children(prefix)

    def link(self, key: str, staged: Path) -> None:
        staged.parent.mkdir(parents=True, exist_ok=True)
        try:
            staged.hardlink_to(self.root / key)
        except OSError:  # no links on this file system, or too many of this file
            shutil.copyfile(self.root / key, staged)

    def add(self, staged: Path, key: str) -> None:
        target = self.root / key
        with full_disk_reported(self.root):
            sync(staged)
            _make_folders(target.parent, self.root)
            staged.replace(target)
            sync(target.parent)

    def remove(self, key: str) -> None:
        path = self.root / key
        path.unlink(missing_ok=True)
        sync(path.parent)

    def discard(self, prefix: str) -> int:
        target = self.root / prefix
        with self._alone(), self.staging() as scratch:
            files = [path.stat() for path in target.rglob("*") if path.is_file()]
            target.rename(scratch / "discarded")
            sync(target.parent)
        return sum(file.st_size for file in files if file.st_nlink == 1)

    def files(self, prefix: str) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in (self.root / prefix).rglob("*") if path.is_file())

    def get(self, key: str) -> bytes | None:
        try:
            return (self.root / key).read_bytes()
        except FileNotFoundError:
            return None

    def swap(self, key: str, old: bytes | None, new: bytes) -> bool:
        path = self.root / key
        with full_disk_reported(self.root), self._alone(), self.staging() as scratch:
            if self.get(key) != old:
                return False
            fresh = scratch / "fresh"
            fresh.write_bytes(new)
            sync(fresh)
            _make_folders(path.parent, self.root)
            fresh.replace(path)
            sync(path.parent)
        return True

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process publishes or swaps meanwhile."""
        with held(self._make_scratch() / "alone"):
            yield

    def children(self, prefix: str) -> list[str]:
        folder = self.root / prefix
        return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []

    def stat(self, key: str) -> tuple[int, int] | None:
        try:
            status = (self.root / key).stat()
        except FileNotFoundError:
            return None
        return status.st_size, status.st_mtime_ns

    def sha256(self, key: str) -> str:
        return sha256_of(self.root / key)

    def scan(self, keys: Iterable[str]) -> pl.LazyFrame:
        return pl.scan_parquet([self.root / key for key in keys], hive_partitioning=False)

    def uri(self, key: str) -> str:
        return str(self.root / key)


@contextlib.contextmanager
def _owned(path: Path) -> Iterator[None]:
    """A lock file that tells a sweeper in another process that its owner lives; the kernel frees it when we die."""
    while True:
        with held(path) as lock:
            if not os.fstat(lock.fileno()).st_nlink:
                continue  # a sweeper came before the lock was ours
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _make_folders(folder: Path, root: Path) -> None:
    """Make `folder` and its parents below `root`, durably."""
    missing = [path for path in (folder, *folder.parents) if path.is_relative_to(root) and not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        sync(path.parent)


class Verified:
    """Remembers the files that were right, so that each is read once per process, as long as it stays as it is."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._right: dict[str, tuple[File, tuple[int, int | str]]] = {}

    def fault(self, key: str, written: File) -> str | None:
        """What is wrong with the file under a key, in words for an error; None where nothing is."""
        status = self._storage.stat(key)
        if status is None:
            return "a file is missing"
        if self._right.get(key) == (written, status):
            return None
        if status[0] != written.bytes:
            return f"a file has {status[0]:,} bytes and should have {written.bytes:,}"
        if self._storage.sha256(key) != written.sha256:
            return "a file's bytes are not those that were written"
        rows = self._storage.scan([key]).select(pl.len()).collect().item()
        if rows != written.rows:
            return f"a file holds {rows:,} rows and should hold {written.rows:,}"
        self._right[key] = (written, status)
        return None

    def clear(self) -> None:
        """Every file is to be read again."""
        self._right.clear()
