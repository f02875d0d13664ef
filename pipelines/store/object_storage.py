"""Versions in a bucket of an object storage that speaks S3, by obstore; polars reads their rows itself.

::

    <url>/data/<table>[/<partition>]/current.json                             the pointer
    <url>/data/<table>[/<partition>]/<version>/manifest.json
    <url>/data/<table>[/<partition>]/<version>/rows/part-00000.<sha256>.parquet
    <url>/releases/…                                                          likewise

An object is whole or absent, but several cannot be put at once. So nothing counts without its manifest, which is put
last, and only where there is none; a pointer is put only in the place of the one that was read, by its etag. The name
of a file holds its hash: two processes that publish the same version cannot replace each other's files.

Locks, scratch and caches stay on the local disk: one home writes below one URL.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipelines.core.files import held, sha256_of
from pipelines.errors import SettingsError, StorageUnreachable
from pipelines.settings import settings_file, storage_url
from pipelines.store.manifest import MANIFEST, File
from pipelines.store.storage import LocalFolder, Storage

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import S3Store

SECRETS = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
_POINTER = "current.json"
_AT_ONCE = 1_000  # keys in one request
_PIECE = 8 << 20  # bytes of a file that are hashed at once
_RETRY_FOR = timedelta(seconds=30)
_REFUSED = ("403 Forbidden", "401 Unauthorized")
_TIMEOUT = "10min"  # of one request: the largest file in one piece


def storage_of(root: Path) -> Storage:
    """Where the versions of a folder of a home lie: there, or in the bucket that the home's settings name.

    Raises SettingsError where they cannot be read.
    """
    url = storage_url(root.parent)
    return LocalFolder(root) if url is None else ObjectStorage(root, f"{url.rstrip('/')}/{root.name}")


class _Object(NamedTuple):
    content: bytes
    etag: str


class ObjectStorage(Storage):
    """The objects below a URL `s3://bucket/prefix`. Keys and endpoint come from the environment (AWS_*).

    All calls raise StorageUnreachable for a bucket that is not there, refuses its user, or does not answer.
    """

    def __init__(self, root: Path, url: str) -> None:
        super().__init__(root)
        self.url = url
        self._linked: dict[Path, str] = {}  # files in a staging folder that are copies of an object

    @contextlib.contextmanager
    def _asked(self) -> Iterator["S3Store"]:
        """The client, with its errors reported."""
        client = self._client
        with self._errors_reported():
            yield client

    @cached_property
    def _client(self) -> "S3Store":
        """A client of a bucket that answers."""
        try:
            from obstore.store import S3Store
        except ImportError as error:
            raise SettingsError(
                f"tables and releases lie in {self.url}, and obstore is not installed",
                where=f"[storage] url of {settings_file(self.root.parent)}",
                hint="pip install obstore (the extra `storage` of pyproject.toml)",
            ) from error
        with self._errors_reported():
            client = S3Store.from_url(
                self.url,
                client_options={"allow_http": _endpoint().startswith("http://"), "timeout": _TIMEOUT},
                retry_config={"max_retries": 5, "retry_timeout": _RETRY_FOR},
            )
            client.list_with_delimiter()
        return client

    @contextlib.contextmanager
    def _errors_reported(self) -> Iterator[None]:
        """What the storage answers, or its silence, as an error with a hint. A missing object is the caller's."""
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, PermissionError) as error:
            words = str(error)
            if "NoSuchBucket" in words:
                raise self._no_bucket() from error
            refused = isinstance(error, PermissionError) or any(code in words for code in _REFUSED)
            what = "refuses access" if refused else "does not answer as it should"
            raise StorageUnreachable(
                f"the storage {what}: {words.splitlines()[0]}",
                where=self.url,
                hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of a user who may list, read, write and delete "
                "there"
                if refused
                else "look at AWS_ENDPOINT_URL, AWS_REGION, the keys (AWS_ACCESS_KEY_ID) and the network; then run the "
                "same command again",
            ) from error

    def _no_bucket(self) -> StorageUnreachable:
        return StorageUnreachable(
            "there is no such bucket",
            where=self.url,
            hint="make it, or correct [storage] url in the settings; look at AWS_ENDPOINT_URL and AWS_REGION",
        )

    # Writing

    def sweep(self) -> None:
        """Remove also the objects of uploads that were cut off: those below a folder without a manifest."""
        super().sweep()
        with held(self._make_scratch() / "uploading"):  # nobody of this home uploads meanwhile
            keys = self.files("")
            whole = {PurePosixPath(key).parent for key in keys if PurePosixPath(key).name == MANIFEST}
            self._delete(
                key
                for key in keys
                if PurePosixPath(key).name != _POINTER and whole.isdisjoint(PurePosixPath(key).parents)
            )

    def key(self, prefix: str, file: File) -> str:
        """With the hash of the file in its name."""
        return _hashed(prefix, file.path, file.sha256)

    def publish(self, staged: Path, prefix: str, damaged: Callable[[], bool]) -> None:
        """Put the files, then the manifest; what an earlier upload left behind is overwritten, or removed."""
        manifest, content = f"{prefix}/{MANIFEST}", (staged / MANIFEST).read_bytes()
        with held(self._make_scratch() / "uploading", shared=True):
            while True:
                there = self._get(manifest)
                if there is not None and not damaged():
                    return
                keys = {self._upload(path, staged, prefix) for path in staged.rglob("*") if path.is_file()}
                if self._put(manifest, content, there):
                    break
            if there is None:  # others that upload cannot put a manifest any more
                self._delete(set(self.files(prefix)) - keys - {manifest})

    def _upload(self, path: Path, staged: Path, prefix: str) -> str:
        relative = path.relative_to(staged)
        if str(relative) == MANIFEST:
            return f"{prefix}/{MANIFEST}"
        key = _hashed(prefix, str(relative), sha256_of(path))
        if (source := self._linked.pop(path, None)) is None or not self._copy(source, key):
            self.add(path, key)
        return key

    def _copy(self, source: str, key: str) -> bool:
        """Copy an object within the storage; False where it is gone."""
        with self._asked() as client:
            try:
                client.copy(source, key)
            except FileNotFoundError:
                return False
        return True

    def link(self, key: str, staged: Path) -> None:
        """Fetch the object, for who reads what is staged; when that is published, the storage copies it itself."""
        self.fetch(key, staged)
        self._linked[staged] = key

    def fetch(self, key: str, path: Path) -> None:
        """Write what lies under `key` into a local file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for piece in self._pieces(key):
                file.write(piece)

    def add(self, staged: Path, key: str) -> None:
        """In one request: of several a kill would leave parts behind that no listing shows."""
        with self._asked() as client, self._bucket_there():
            client.put(key, staged, use_multipart=False)

    @contextlib.contextmanager
    def _bucket_there(self) -> Iterator[None]:
        """What is put is missing only where the bucket is."""
        try:
            yield
        except FileNotFoundError as error:
            raise self._no_bucket() from error

    def remove(self, key: str) -> None:
        self._delete([key])

    def discard(self, prefix: str) -> int:
        """The manifest goes first: what is left without it is no version any more."""
        sizes = self._sizes(prefix)
        self._delete([f"{prefix}/{MANIFEST}"])
        self._delete(sizes)
        return sum(sizes.values())

    def _delete(self, keys: Iterable[str]) -> None:
        listed = sorted(keys)
        for start in range(0, len(listed), _AT_ONCE):
            with self._asked() as client, contextlib.suppress(FileNotFoundError):
                client.delete(listed[start : start + _AT_ONCE])

    def swap(self, key: str, old: bytes | None, new: bytes) -> bool:
        there = self._get(key)
        return (there and there.content) == old and self._put(key, new, there)

    def _put(self, key: str, content: bytes, before: _Object | None) -> bool:
        """Put an object in the place of the one that was read, or where there was none; False where another came."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._asked() as client, self._bucket_there():
            try:
                if before is None:
                    client.put(key, content, mode="create")
                else:
                    client.put(key, content, mode={"e_tag": before.etag})
            except (AlreadyExistsError, PreconditionError):
                return False
        return True

    # Reading

    def get(self, key: str) -> bytes | None:
        there = self._get(key)
        return there and there.content

    def _get(self, key: str) -> _Object | None:
        with self._asked() as client:
            try:
                answer = client.get(key)
                return _Object(bytes(answer.bytes()), self._etag(answer.meta))
            except FileNotFoundError:
                return None

    def files(self, prefix: str) -> list[str]:
        return sorted(self._sizes(prefix))

    def _sizes(self, prefix: str) -> dict[str, int]:
        with self._asked() as client:
            pages = client.list(prefix or None, chunk_size=_AT_ONCE)
            return {one["path"]: one["size"] for page in pages for one in page}

    def children(self, prefix: str) -> list[str]:
        with self._asked() as client:
            folders = client.list_with_delimiter(prefix or None)["common_prefixes"]
        return sorted(PurePosixPath(folder).name for folder in folders)

    def published(self, prefix: str) -> list[str]:
        """Those that have a manifest."""
        manifests = (PurePosixPath(key) for key in self.files(prefix) if PurePosixPath(key).name == MANIFEST)
        return sorted(path.parent.name for path in manifests if path.parent.parent == PurePosixPath(prefix))

    def stat(self, key: str) -> tuple[int, int | str] | None:
        with self._asked() as client:
            try:
                head = client.head(key)
            except FileNotFoundError:
                return None
        return head["size"], self._etag(head)

    def _etag(self, head: "ObjectMeta") -> str:
        if etag := head["e_tag"]:
            return etag
        raise StorageUnreachable(
            "the storage gives no etags, and what one process has written another could overwrite unseen",
            where=self.url,
            hint="take a storage with conditional writes (docs/object-storage.md)",
        )

    def sha256(self, key: str) -> str:
        hashed = hashlib.sha256()
        for piece in self._pieces(key):
            hashed.update(piece)
        return hashed.hexdigest()

    def _pieces(self, key: str) -> Iterator[Any]:
        with self._asked() as client:
            yield from client.get(key).stream(min_chunk_size=_PIECE)

    def scan(self, keys: Iterable[str]) -> pl.LazyFrame:
        paths, endpoint = [self.uri(key) for key in keys], _endpoint()
        options = {"aws_allow_http": str(endpoint.startswith("http://")).lower()}
        options |= {"aws_endpoint_url": endpoint} if endpoint else {}  # polars keeps a client for the same options
        return pl.scan_parquet(paths, hive_partitioning=False, storage_options=options, credential_provider=None)

    def uri(self, key: str) -> str:
        return f"{self.url}/{key}"


def _hashed(prefix: str, path: str, sha256: str) -> str:
    name = PurePosixPath(path)
    return f"{prefix}/{name.with_stem(f'{name.stem}.{sha256[:16]}')}"


def _endpoint() -> str:
    """The host that the environment names; of one without TLS, on this machine or in the user's network, `http://`."""
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    return next((os.environ[name] for name in names if os.environ.get(name)), "")
