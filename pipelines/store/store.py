"""The store: every table as immutable versions, and one pointer each to the current one.

::

    <root>/<table>[/<partition>]/current.json             the pointer
    <root>/<table>[/<partition>]/<version>/manifest.json
    <root>/<table>[/<partition>]/<version>/rows/*.parquet
    <root>/<table>[/<partition>]/<version>/dropped/*.parquet

A version is built in a scratch folder, made durable, published at once, and pointed to last. So whatever happens on
the way, the pointer leads to a whole version: the one before or the new one.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import dataframely as dy
import polars as pl
import pyarrow.parquet as pq
from pydantic import ValidationError

from pipelines.errors import DamagedVersion, InvalidRows, NoVersion, RequestError, UnknownName
from pipelines.store.content import version_of
from pipelines.store.diff import Diff, diff
from pipelines.store.manifest import Column, File, Manifest, Pointer, Run
from pipelines.store.storage import LocalFolder, Storage
from schemas.table import Dropped, Table, to_arrow
from schemas.tables import PARTITIONED, TABLES

_VERSION = re.compile(r"[0-9a-f]{16}")
_ROW_GROUP = 20_000


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a table or of a partition of it."""

    table: str
    partition: str | None
    version: str
    rows: int
    dropped: int
    current: bool
    manifest: Manifest

    @property
    def name(self) -> str:
        """`table` or `table/partition`."""
        return self.table if self.partition is None else f"{self.table}/{self.partition}"


class Store:
    """Versioned tables below `root`. Several processes may use it at once."""

    def __init__(self, root: Path | str, storage: Storage | None = None) -> None:
        self.storage: Storage = storage or LocalFolder(Path(root))
        self._verified: dict[str, tuple[int, int]] = {}

    # Writing

    def write(
        self,
        table: str,
        kept: pl.DataFrame | pl.LazyFrame,
        dropped: pl.DataFrame | pl.LazyFrame | None = None,
        partition: str | None = None,
        parents: Iterable[Version] = (),
        *,
        code: str = "",
        settings: Mapping[str, Any] | None = None,
        note: Mapping[str, Any] | None = None,
    ) -> Version:
        """Make `kept` and `dropped` the current version; the same content again is the same version.

        Args:
            table: A name of `schemas.tables.TABLES`.
            kept: The rows; cast to the table's schema and validated by its rules.
            dropped: The rows that the step did not keep (`schemas.table.Dropped`).
            partition: The data set, or source and day, of a partitioned table.
            parents: The versions that the rows were made from.
            code: The version of the code that made them.
            settings: The settings that the step read.
            note: What else to remember of the run; it does not decide the content.

        Raises:
            InvalidRows: The rows break the schema. StorageFull: no room. In both cases the pointer has not moved.
        """
        schema = self._schema(table, partition)
        kept = _validated(table, schema, kept)
        dropped = _validated(f"{table} (dropped)", Dropped, Dropped.create_empty() if dropped is None else dropped)
        version = version_of(schema, table, kept, dropped)
        run = Run(
            parents={parent.name: parent.version for parent in parents},
            code=code,
            settings=dict(settings or {}),
            note=dict(note or {}),
        )
        prefix = self._prefix(table, partition, version)
        if not self._remember_run(prefix, run):
            self._publish(schema, table, partition, version, kept, dropped, run)
        self._point(table, partition, lambda _: Pointer(version=version, inputs=run.inputs))
        return self.version(table, version, partition)

    def _publish(
        self,
        schema: type[Table],
        table: str,
        partition: str | None,
        version: str,
        kept: pl.DataFrame,
        dropped: pl.DataFrame,
        run: Run,
    ) -> None:
        prefix = self._prefix(table, partition, version)
        with self.storage.staging() as staged:
            files = [
                _write_parquet(staged, "rows/part-00000.parquet", kept, schema),
                _write_parquet(staged, "dropped/part-00000.parquet", dropped, Dropped),
            ]
            described = schema.describe()
            manifest = Manifest(
                table=table,
                partition=partition,
                version=version,
                schema_version=schema.version,
                columns=[
                    Column(name=field.name, type=str(field.type), description=described[field.name])
                    for field in schema.arrow_schema()
                ],
                rows=kept.height,
                dropped=dropped.height,
                reasons=_reasons(dropped),
                files=files,
                runs=[run],
            )
            (staged / "manifest.json").write_bytes(manifest.to_bytes())
            self.storage.publish(staged, prefix, damaged=lambda: not self._whole(prefix))
        self._check_files(self._manifest(prefix), prefix)

    def _whole(self, prefix: str) -> bool:
        try:
            self._check_files(self._manifest(prefix), prefix)
        except DamagedVersion:
            return False
        return True

    def _remember_run(self, prefix: str, run: Run) -> bool:
        """Add `run` to the manifest of a version that is there and whole; False where there is none."""
        key = f"{prefix}/manifest.json"
        while (old := self.storage.get(key)) is not None:
            if not self._whole(prefix):
                return False  # to be written anew
            manifest = Manifest.model_validate_json(old)
            if any(known.inputs == run.inputs and known.note == run.note for known in manifest.runs):
                return True
            if self.storage.swap(key, old, manifest.model_copy(update={"runs": [*manifest.runs, run]}).to_bytes()):
                return True
        return False

    def _point(self, table: str, partition: str | None, move: Callable[[bytes | None], Pointer]) -> None:
        key = self._pointer_key(table, partition)
        while True:
            old = self.storage.get(key)
            if self.storage.swap(key, old, move(old).to_bytes()):
                return

    def promote(self, table: str, version: str, partition: str | None = None) -> Version:
        """Make an older version the current one, until something upstream of the table changes."""
        chosen = self.version(table, version, partition)
        self._check_files(chosen.manifest, self._prefix(table, partition, chosen.version))

        def move(old: bytes | None) -> Pointer:
            try:
                inputs = Pointer.model_validate_json(old or b"").inputs
            except ValidationError:  # a damaged pointer: promoting is the remedy for it
                inputs = chosen.manifest.runs[-1].inputs
            return Pointer(version=chosen.version, inputs=inputs, promoted=True)

        self._point(table, partition, move)
        return replace(chosen, current=True)

    # Reading

    def read(self, table: str, version: str | None = None, partition: str | None = None) -> pl.LazyFrame:
        """The rows of a version (default: the current one); of all partitions together where none is named.

        Raises NoVersion, or DamagedVersion where a file is not what its manifest says.
        """
        return self._scan(table, version, partition, "rows")

    def read_dropped(self, table: str, version: str | None = None, partition: str | None = None) -> pl.LazyFrame:
        """The rows that were dropped when the version was made."""
        return self._scan(table, version, partition, "dropped")

    def _scan(self, table: str, version: str | None, partition: str | None, part: str) -> pl.LazyFrame:
        if table in PARTITIONED and partition is None:
            chosen = self.current(table)
            if not chosen:
                raise self._no_version(table, None)
        else:
            chosen = [self.version(table, version, partition)]
        paths = []
        for one in chosen:
            prefix = self._prefix(one.table, one.partition, one.version)
            self._check_files(one.manifest, prefix)
            paths += [
                self.storage.uri(f"{prefix}/{file.path}")
                for file in one.manifest.files
                if file.path.startswith(f"{part}/")
            ]
        return pl.scan_parquet(paths, hive_partitioning=False)

    def version(self, table: str, version: str | None = None, partition: str | None = None) -> Version:
        """A version by its id or the beginning of it; the current one by default."""
        self._schema(table, partition)
        pointer = self.pointer(table, partition)
        if version is None:
            if pointer is None:
                raise self._no_version(table, partition)
            version = pointer.version
        elif not _VERSION.fullmatch(version):
            version = self._complete(table, version, partition)
        manifest = self._manifest(self._prefix(table, partition, version))
        if (manifest.table, manifest.partition, manifest.version) != (table, partition, version):
            raise DamagedVersion(
                f"the manifest speaks of {manifest.table} {manifest.version}, not of {table} {version}",
                where=self.storage.uri(self._prefix(table, partition, version) + "/manifest.json"),
                remedy=self._remedy(table),
            )
        return Version(
            table,
            partition,
            version,
            manifest.rows,
            manifest.dropped,
            pointer is not None and pointer.version == version,
            manifest,
        )

    def _complete(self, table: str, beginning: str, partition: str | None) -> str:
        known = self.version_ids(table, partition)
        found = [version for version in known if beginning and version.startswith(beginning)]
        if len(found) != 1:
            raise UnknownName(f"version of {table}", beginning, known)
        return found[0]

    def versions(self, table: str, partition: str | None = None) -> list[Version]:
        """All versions of a table or partition, oldest first; damaged ones are left out (`verify` names them)."""
        self._schema(table, partition)
        found = []
        for version in self.version_ids(table, partition):
            try:
                found.append(self.version(table, version, partition))
            except DamagedVersion:
                continue
        return sorted(found, key=lambda one: (one.manifest.runs[0].at, one.version))

    def partitions(self, table: str) -> list[str]:
        """The partitions of a partitioned table."""
        return [unquote(name) for name in self.storage.children(table)] if table in PARTITIONED else []

    def current(self, table: str) -> list[Version]:
        """The current version of a table, or of each of its partitions; none where nothing was written."""
        places: list[str | None] = list(self.partitions(table)) if table in PARTITIONED else [None]
        return [self.version(table, partition=place) for place in places if self.pointer(table, place) is not None]

    def diff(self, table: str, a: str, b: str, partition: str | None = None) -> Diff:
        """What version `b` has that `a` has not, by the key of the table."""
        before = self.read(table, a, partition).collect()
        after = self.read(table, b, partition).collect()
        return diff(before, after, TABLES[table].key())

    def pointer(self, table: str, partition: str | None = None) -> Pointer | None:
        """The pointer of a table, or None where nothing was written."""
        key = self._pointer_key(table, partition)
        content = self.storage.get(key)
        if content is None:
            return None
        try:
            return Pointer.model_validate_json(content)
        except ValidationError as error:
            known = ", ".join(self.version_ids(table, partition))
            raise DamagedVersion(
                f"the pointer of {table} cannot be read",
                where=self.storage.uri(key),
                remedy=f"choose a version: gongqing tables promote {table} VERSION (there are: {known})",
            ) from error

    def verify(self, version: Version) -> None:
        """Read everything again and compare with the manifest and with the version itself.

        Raises DamagedVersion.
        """
        prefix = self._prefix(version.table, version.partition, version.version)
        self._verified.clear()
        self._check_files(version.manifest, prefix)
        kept = self.read(version.table, version.version, version.partition).collect()
        dropped = self.read_dropped(version.table, version.version, version.partition).collect()
        if version.manifest.schema_version == TABLES[version.table].version and [
            column.name for column in version.manifest.columns
        ] == list(TABLES[version.table].column_names()):
            content = version_of(TABLES[version.table], version.table, kept, dropped)
            if content != version.version:
                raise DamagedVersion(
                    f"the rows of {version.name} are those of version {content}, not of {version.version}",
                    where=self.storage.uri(prefix),
                    remedy=self._remedy(version.table),
                )

    # Names and checks

    @staticmethod
    def _schema(table: str, partition: str | None) -> type[Table]:
        if table not in TABLES:
            raise UnknownName("table", table, TABLES)
        if partition is not None:
            if table not in PARTITIONED:
                raise RequestError(f"{table} has no partitions", where=partition, remedy="leave the partition out")
            if (
                not partition
                or partition in {".", ".."}
                or _VERSION.fullmatch(partition)
                or len(quote(partition)) > 200
            ):
                raise RequestError(f"{partition!r} cannot name a partition", remedy="use the name of a data set")
        return TABLES[table]

    @staticmethod
    def _home(table: str, partition: str | None) -> str:
        if table in PARTITIONED and partition is None:
            raise RequestError(f"{table} is partitioned", remedy="name the partition")
        return table if partition is None else f"{table}/{quote(partition, safe='')}"

    def _prefix(self, table: str, partition: str | None, version: str) -> str:
        return f"{self._home(table, partition)}/{version}"

    def _pointer_key(self, table: str, partition: str | None) -> str:
        return f"{self._home(table, partition)}/current.json"

    def version_ids(self, table: str, partition: str | None = None) -> list[str]:
        """The ids of all versions that lie there, whole or damaged."""
        return [name for name in self.storage.children(self._home(table, partition)) if _VERSION.fullmatch(name)]

    @staticmethod
    def _no_version(table: str, partition: str | None) -> NoVersion:
        remedy = "gongqing import NAME PATH" if table in PARTITIONED else "gongqing refresh"
        return NoVersion(f"{table} has no version yet", where=partition, remedy=f"make one: {remedy}")

    @staticmethod
    def _remedy(table: str) -> str:
        again = "import the file again" if table in PARTITIONED else f"gongqing refresh --select {table}"
        return f"make it anew: {again}; or go back to another version: gongqing tables promote {table} VERSION"

    def _manifest(self, prefix: str) -> Manifest:
        key = f"{prefix}/manifest.json"
        content = self.storage.get(key)
        table = prefix.split("/", 1)[0]
        if content is None:
            raise DamagedVersion(
                "a version without a manifest", where=self.storage.uri(key), remedy=self._remedy(table)
            )
        try:
            return Manifest.model_validate_json(content)
        except ValidationError as error:
            raise DamagedVersion(
                "the manifest cannot be read", where=self.storage.uri(key), remedy=self._remedy(table)
            ) from error

    def _check_files(self, manifest: Manifest, prefix: str) -> None:
        """Every file is there, of the size and with the bytes that the manifest says; hashed once per process."""
        for file in manifest.files:
            key = f"{prefix}/{file.path}"
            status = self.storage.stat(key)
            if status is not None and self._verified.get(key) == status:
                continue
            if status is None:
                problem = "a file is missing"
            elif status[0] != file.bytes:
                problem = f"a file has {status[0]:,} bytes and should have {file.bytes:,}"
            elif self.storage.sha256(key) != file.sha256:
                problem = "a file's bytes are not those that were written"
            else:
                self._verified[key] = status
                continue
            raise DamagedVersion(problem, where=self.storage.uri(key), remedy=self._remedy(manifest.table))
        counted = {"rows/": manifest.rows, "dropped/": manifest.dropped}
        for part, expected in counted.items():
            found = sum(file.rows for file in manifest.files if file.path.startswith(part))
            if found != expected:
                raise DamagedVersion(
                    f"the manifest counts {expected:,} rows and its files hold {found:,}",
                    where=self.storage.uri(f"{prefix}/manifest.json"),
                    remedy=self._remedy(manifest.table),
                )


def _validated(name: str, schema: type[Table], frame: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """`frame` in the columns, types and order of its schema, by key; InvalidRows where it breaks the rules."""
    try:
        return schema.validate(frame.lazy().collect(), cast=True).sort(schema.key())
    except (dy.exc.ValidationError, dy.exc.SchemaError, pl.exceptions.PolarsError) as error:
        # A polars error quotes values, and a value may be what somebody wrote.
        told = type(error).__name__ if isinstance(error, pl.exceptions.PolarsError) else error
        raise InvalidRows(
            f"rows break the schema of {name}: {told}",
            where=f"schemas.tables.TABLES[{name.split(' ', maxsplit=1)[0]!r}]",
            remedy="mend the step that made them; nothing was written",
        ) from error


def _reasons(dropped: pl.DataFrame) -> dict[str, int]:
    counted = dropped.group_by("unit", "reason").len().sort("len", "unit", "reason", descending=[True, False, False])
    return {f"{unit}: {reason}": count for unit, reason, count in counted.iter_rows()}


def _write_parquet(folder: Path, path: str, frame: pl.DataFrame, schema: type[Table]) -> File:
    target = folder / path
    target.parent.mkdir(parents=True)
    pq.write_table(to_arrow(frame, schema), target, compression="zstd", row_group_size=_ROW_GROUP)
    with target.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return File(path=path, rows=frame.height, bytes=target.stat().st_size, sha256=sha256)
