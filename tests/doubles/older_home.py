"""Versions as another gongqing would have written them: other columns, another schema version, manifest and all."""

import hashlib
import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from pipelines.store import Store, Version


def manifest_of(store: Store, version: Version) -> Path:
    folder = Path(store.storage.uri(version.table))
    return (folder if version.partition is None else folder / version.partition) / version.version / "manifest.json"


def say(path: Path, **said: Any) -> None:
    """A manifest or a pointer that says something else or more; `schema_version` is added to what it was."""
    document = json.loads(path.read_text(encoding="utf-8"))
    if "schema_version" in said:
        said["schema_version"] += document["schema_version"]
    path.write_text(json.dumps(document | said), encoding="utf-8")


def rewrite(store: Store, version: Version, rows: pl.DataFrame, schema_version: int = 0) -> None:
    """The version holds `rows`, in their own columns, and its manifest says so."""
    path = manifest_of(store, version)
    manifest = json.loads(path.read_text(encoding="utf-8"))
    table = rows.to_arrow()
    file = path.parent / "rows" / "part-00000.parquet"
    pq.write_table(table, file)
    (written,) = (one for one in manifest["files"] if one["path"].startswith("rows/"))
    written |= {"bytes": file.stat().st_size, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    columns = [{"name": field.name, "type": str(field.type), "description": ""} for field in table.schema]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    say(path, columns=columns, schema_version=schema_version)
