"""Versions as another gongqing would have written them: other columns, another schema version, manifest and all; and
files that somebody changed.
"""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from pipelines.core.files import sha256_of
from pipelines.store import Store, Version
from pipelines.store.address import Address
from pipelines.store.manifest import Chunk
from pipelines.store.storage import Storage


def put(storage: Storage, key: str, content: bytes) -> None:
    """The content under a key is another, whatever it was."""
    with storage.staging() as staged:
        (staged / "content").write_bytes(content)
        storage.add(staged / "content", key)


def manifest_of(version: Version) -> str:
    """The key of its manifest."""
    return Address(*version.manifest.place).manifest


def key_of(store: Store, version: Version, file: Chunk) -> str:
    """The key of a file of it."""
    return store.storage.key(Address(*version.manifest.place).prefix, file)


def say(store: Store, key: str, **said: Any) -> None:
    """A manifest or a pointer that says something else or more; `schema_version` is added to what it was."""
    document = json.loads(store.storage.get(key) or b"")
    if "schema_version" in said:
        said["schema_version"] += document["schema_version"]
    put(store.storage, key, json.dumps(document | said).encode())


def rewrite(store: Store, version: Version, rows: pl.DataFrame, schema_version: int = 0) -> None:
    """The version holds `rows`, in their own columns, and its manifest says so."""
    key = manifest_of(version)
    files = json.loads(store.storage.get(key) or b"")["files"]
    (written,) = (one for one in files if one["path"].startswith("rows/"))
    table = rows.to_arrow()
    with store.storage.staging() as staged:
        path = Path(staged / "part.parquet")
        pq.write_table(table, path)
        written |= {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        store.storage.add(path, key_of(store, version, Chunk(**written)))
    columns = [{"name": field.name, "type": str(field.type), "description": ""} for field in table.schema]
    say(store, key, files=files, columns=columns, schema_version=schema_version)
