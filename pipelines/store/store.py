"""The store: every table as immutable versions, and one pointer each to the current one.

::

    <root>/<table>[/<partition>]/current.json             the pointer
    <root>/<table>[/<partition>]/<version>/manifest.json
    <root>/<table>[/<partition>]/<version>/rows/*.parquet
    <root>/<table>[/<partition>]/<version>/dropped/*.parquet

A version is built in a scratch folder, made durable, published at once, and pointed to last. So whatever happens on
the way, the pointer leads to a whole version: the one before or the new one.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import dataframely as dy
import polars as pl
import pyarrow as pa
from pydantic import ValidationError

from pipelines.errors import (
    DamagedVersion,
    InvalidRows,
    NewerHome,
    NoVersion,
    OlderSchema,
    RequestError,
    UnknownName,
)
from pipelines.store.content import version_of
from pipelines.store.diff import Diff, diff
from pipelines.store.forms import differing, filled
from pipelines.store.manifest import Column, Manifest, Pointer, Run, Tombstone
from pipelines.store.parquet import write_parquet
from pipelines.store.storage import LocalFolder, Storage
from pipelines.store.verified import Verified
from schemas.table import Dropped, Table, plain_schema
from schemas.tables import PARTITIONED, STANDING, TABLES

_VERSION = re.compile(r"[0-9a-f]{16}")
_UPDATE = "update gongqing: an older one would spoil what the newer one has written"


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
        self._verified = Verified(self.storage)

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
            partition: The data set, the source and day, or the run, of a partitioned table.
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
        while not self._remember_run(table, partition, version, run):
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
                write_parquet(staged, "rows/part-00000.parquet", kept, schema.arrow_schema()),
                write_parquet(staged, "dropped/part-00000.parquet", dropped, Dropped.arrow_schema()),
            ]
            manifest = Manifest(
                table=table,
                partition=partition,
                version=version,
                schema_version=schema.version,
                columns=_columns(schema),
                rows=kept.height,
                dropped=dropped.height,
                reasons=_reasons(dropped),
                files=files,
                runs=self._runs_so_far(table, partition, version) or [run],
            )
            (staged / "manifest.json").write_bytes(manifest.to_bytes())
            self.storage.publish(staged, prefix, damaged=lambda: not self._complete(table, partition, version))
        self._check_files(self._manifest(table, partition, version))

    def _runs_so_far(self, table: str, partition: str | None, version: str) -> list[Run]:
        """The runs of a version that is about to be mended; none where there is no version, or its manifest is lost."""
        try:
            return self._manifest(table, partition, version).runs
        except DamagedVersion:
            return []

    def _complete(self, table: str, partition: str | None, version: str) -> bool:
        """Whether it holds all that it is named after: of an erased version rows that are written again are missing."""
        try:
            manifest = self._manifest(table, partition, version)
            self._check_files(manifest)
        except DamagedVersion:
            return False
        return not manifest.erasures and _as_today(manifest, TABLES[table])

    def _remember_run(self, table: str, partition: str | None, version: str, run: Run) -> bool:
        """Put `run` last in the manifest of a version that is there and whole; False where there is none."""
        key = self._manifest_key(table, partition, version)
        while self._complete(table, partition, version):
            old = self.storage.get(key)
            manifest = self._manifest(table, partition, version)
            if _alike(manifest.runs[-1], run):
                return True
            others = [known for known in manifest.runs if not _alike(known, run)]
            if self.storage.swap(key, old, manifest.model_copy(update={"runs": [*others, run]}).to_bytes()):
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
        self._check_files(chosen.manifest)

        def move(old: bytes | None) -> Pointer:
            try:
                inputs = Pointer.model_validate_json(old or b"").inputs
            except ValidationError:  # a damaged pointer: promoting is the hint for it
                inputs = chosen.manifest.runs[-1].inputs
            return Pointer(version=chosen.version, inputs=inputs, promoted=True)

        self._point(table, partition, move)
        return replace(chosen, current=True)

    def erase(
        self, version: Version, kept: pl.DataFrame, dropped: pl.DataFrame, *, erasure: str, changed: int
    ) -> Version:
        """Leave a version these rows and no others. It keeps its name, since others pinned it, and has a tombstone.

        New files are added, the manifest is swapped, the old files go: whenever a process is killed the version reads
        as before or as after, and the same call again finishes.

        Args:
            version: Which.
            kept: What is left of its rows, in their order.
            dropped: The same of what was dropped.
            erasure: What the tombstone names; a version that has it already is only rid of its old files.
            changed: How many of the rows that are left lost a part of themselves.
        """
        place = version.manifest.place
        prefix, key = self._prefix(*place), self._manifest_key(*place)
        while not (manifest := self._manifest(*place)).erased_by(erasure):
            old = self.storage.get(key)
            with self.storage.staging() as staged:
                files = [
                    write_parquet(staged, f"rows/{erasure}.parquet", kept, _declared(kept, manifest)),
                    write_parquet(staged, f"dropped/{erasure}.parquet", dropped, Dropped.arrow_schema()),
                ]
                for file in files:
                    self.storage.add(staged / file.path, f"{prefix}/{file.path}")
            schema = TABLES[version.table]
            tombstone = Tombstone(
                erasure=erasure,
                rows=manifest.rows - kept.height,
                dropped=manifest.dropped - dropped.height,
                changed=changed,
                content=version_of(schema, version.table, kept, dropped) if _as_today(manifest, schema) else "",
            )
            left = {"rows": kept.height, "dropped": dropped.height, "reasons": _reasons(dropped), "files": files}
            erased = manifest.model_copy(update=left | {"erasures": [*manifest.erasures, tombstone]})
            self.storage.swap(key, old, erased.to_bytes())
        named = {key, *(f"{prefix}/{file.path}" for file in manifest.files)}
        for other in self.storage.files(prefix):
            if other not in named:
                self.storage.remove(other)
        return self.version(version.table, version.version, version.partition)

    def make_stale(self, table: str) -> None:
        """The next refresh makes the table again, whatever it was made from."""

        def move(old: bytes | None) -> Pointer:
            return Pointer.model_validate_json(old or b"").model_copy(update={"inputs": ""})

        self._point(table, None, move)

    # Reading

    def read(self, table: str, version: str | None = None, partition: str | None = None) -> pl.LazyFrame:
        """The rows of a version (default: the current one); of all partitions together where none is named.

        Columns that came after it was written, and may be null, are null; a version that differs in more is read as it
        was written (`require_todays`).

        Raises NoVersion, DamagedVersion where a file is not what its manifest says, OlderSchema where partitions in
        several forms are read together.
        """
        chosen = self._chosen(table, version, partition)
        if all(_as_today(one.manifest, TABLES[table]) for one in chosen):
            return self._scan(chosen, "rows")
        if len(chosen) > 1:
            for one in chosen:
                self.require_todays(one)
        return pl.concat([filled(self._scan([one], "rows"), TABLES[table]) for one in chosen])

    def read_dropped(self, table: str, version: str | None = None, partition: str | None = None) -> pl.LazyFrame:
        """The rows that were dropped when the version was made."""
        return self._scan(self._chosen(table, version, partition), "dropped")

    def check(self, version: Version) -> None:
        """Raises DamagedVersion where a file of a version is missing, or not what its manifest says."""
        self._check_files(version.manifest)

    def require_todays(self, version: Version) -> None:
        """Raises OlderSchema, or NewerHome, where a version's rows cannot be brought into the form of today."""
        schema, manifest = TABLES[version.table], version.manifest
        if _as_today(manifest, schema):
            return
        versions = f"schema version {manifest.schema_version}, and this gongqing has {schema.version}"
        if manifest.schema_version > schema.version:
            raise NewerHome(
                f"{version.name} was written by a newer gongqing: {versions}",
                where=self.storage.uri(self._prefix(*manifest.place)),
                hint=_UPDATE,
            )
        columns = differing(self._scan([version], "rows").collect_schema(), schema)
        if not columns and manifest.schema_version == schema.version:
            return
        which = f"; other columns: {', '.join(columns)}" if columns else ""
        raise OlderSchema(
            f"{version.name} was written by an older gongqing: {versions}{which}",
            where=self.storage.uri(self._prefix(*manifest.place)),
            hint=self._again(*manifest.place),
        )

    def _chosen(self, table: str, version: str | None, partition: str | None) -> list[Version]:
        if table in PARTITIONED and partition is None and version is None:
            chosen = self.current(table)
            if not chosen:
                raise self._no_version(table, None)
            return chosen
        return [self.version(table, version, partition)]

    def _scan(self, chosen: Iterable[Version], part: str) -> pl.LazyFrame:
        paths = []
        for one in chosen:
            prefix = self._prefix(one.table, one.partition, one.version)
            self._check_files(one.manifest)
            paths += [
                self.storage.uri(f"{prefix}/{file.path}")
                for file in one.manifest.files
                if file.path.startswith(f"{part}/")
            ]
        return pl.scan_parquet(paths, hive_partitioning=False)

    def version(self, table: str, version: str | None = None, partition: str | None = None) -> Version:
        """A version by its id or the beginning of it; the current one by default."""
        self._schema(table, partition)
        try:
            pointer = self.pointer(table, partition)
        except DamagedVersion:
            if version is None:
                raise
            pointer = None  # a damaged pointer hides no version that is named
        if version is not None:
            version = self._in_full(table, version, partition)
        elif pointer is not None:
            version = pointer.version
        else:
            raise self._no_version(table, partition)
        manifest = self._manifest(table, partition, version)
        return Version(
            table,
            partition,
            version,
            manifest.rows,
            manifest.dropped,
            pointer is not None and pointer.version == version,
            manifest,
        )

    def _in_full(self, table: str, beginning: str, partition: str | None) -> str:
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
            self._refuse_newer(error, f"the pointer of {table}", key)
            known = ", ".join(self.version_ids(table, partition))
            raise DamagedVersion(
                f"the pointer of {table if partition is None else f'{table}/{partition}'} cannot be read",
                where=self.storage.uri(key),
                hint=f"choose a version: {self._promote_command(table, partition)} (there are: {known})",
            ) from error

    def verify(self, version: Version) -> None:
        """Read everything again and compare with the manifest and with the version itself.

        Raises DamagedVersion.
        """
        schema, manifest = TABLES[version.table], version.manifest
        self._verified.clear()
        kept = self.read(version.table, version.version, version.partition).collect()
        dropped = self.read_dropped(version.table, version.version, version.partition).collect()
        if _as_today(manifest, schema):
            content = version_of(schema, version.table, kept, dropped)
            if content != (manifest.erasures[-1].content if manifest.erasures else version.version):
                # Its manifest agrees with its files, so that a write would take it for whole.
                raise self._damaged(
                    f"the rows are those of version {content}: remove this folder first", *manifest.place, ""
                )

    # Names and checks

    @staticmethod
    def _schema(table: str, partition: str | None) -> type[Table]:
        if table not in TABLES:
            raise UnknownName("table", table, TABLES)
        if partition is not None:
            if table not in PARTITIONED:
                raise RequestError(f"{table} has no partitions", where=partition, hint="leave the partition out")
            if (
                not partition
                or partition in {".", ".."}
                or _VERSION.fullmatch(partition)
                or len(quote(partition, safe="")) > 200
            ):
                raise RequestError(f"{partition!r} cannot name a partition", hint="use the name of a data set")
        return TABLES[table]

    @staticmethod
    def _home(table: str, partition: str | None) -> str:
        if table in PARTITIONED and partition is None:
            raise RequestError(f"{table} is partitioned", hint="name the partition")
        return table if partition is None else f"{table}/{quote(partition, safe='')}"

    def _prefix(self, table: str, partition: str | None, version: str) -> str:
        return f"{self._home(table, partition)}/{version}"

    def _manifest_key(self, table: str, partition: str | None, version: str) -> str:
        return f"{self._prefix(table, partition, version)}/manifest.json"

    def _pointer_key(self, table: str, partition: str | None) -> str:
        return f"{self._home(table, partition)}/current.json"

    def version_ids(self, table: str, partition: str | None = None) -> list[str]:
        """The ids of all versions that lie there, whole or damaged."""
        return [name for name in self.storage.children(self._home(table, partition)) if _VERSION.fullmatch(name)]

    @staticmethod
    def _no_version(table: str, partition: str | None) -> NoVersion:
        return NoVersion(f"{table} has no version yet", where=partition, hint=f"make one: {_made_by(table)}")

    @staticmethod
    def _promote_command(table: str, partition: str | None) -> str:
        where = "" if partition is None else f" --partition {shlex.quote(partition)}"
        return f"gongqing tables promote {table} VERSION{where}"

    def _damaged(
        self, problem: str, table: str, partition: str | None, version: str, file: str = "manifest.json"
    ) -> DamagedVersion:
        name = table if partition is None else f"{table}/{partition}"
        what = f"{name} is damaged: {problem}"
        if table in STANDING:
            what += f"; {table} remembers what was given once, and cannot be made anew"
        return DamagedVersion(
            what,
            where=self.storage.uri(f"{self._prefix(table, partition, version)}/{file}"),
            hint=self._again(table, partition, version),
        )

    def _again(self, table: str, partition: str | None, version: str) -> str:
        """How to come by a version again that cannot be used."""
        others = [one for one in self.version_ids(table, partition) if one != version]
        back = (
            f"; or go back to another version: {self._promote_command(table, partition)} "
            f"(there {'are' if len(others) > 1 else 'is'}: {', '.join(others)})"
            if others
            else ""
        )
        folder = self.storage.uri(self._home(table, partition))
        if table in STANDING:
            return f"restore its folder from a backup{back}. Without either, remove {folder}: {STANDING[table]}"
        if table == "raw_posts":
            source, _, day = str(partition).rpartition("@")
            crawl = f"gongqing crawl {source} --from {day} --until {day}"
            return f"remove {folder}, and fetch the day anew: {crawl}{back}"
        if table in PARTITIONED:
            return f"{'train' if table == 'rollouts' else 'import'} it anew: {_made_by(table, partition)}{back}"
        return f"make it anew: {_made_by(table)} --select {table}{back}"

    def _refuse_newer(self, error: ValidationError, what: str, key: str) -> None:
        """Raises NewerHome where nothing is wrong with a document but that it says more than is known here."""
        problems = error.errors(include_url=False, include_input=False)
        if all(problem["type"] == "extra_forbidden" for problem in problems):
            fields = ", ".join(sorted({".".join(map(str, problem["loc"])) for problem in problems}))
            raise NewerHome(
                f"the home was written by a newer gongqing: {what} has fields that this one does not know: {fields}",
                where=self.storage.uri(key),
                hint=_UPDATE,
            ) from error

    def _manifest(self, table: str, partition: str | None, version: str) -> Manifest:
        """What a version says of itself; DamagedVersion where it says nothing or speaks of another."""
        place = (table, partition, version)
        content = self.storage.get(self._manifest_key(*place))
        if content is None:
            raise self._damaged("a version without a manifest", *place)
        try:
            manifest = Manifest.model_validate_json(content)
        except ValidationError as error:
            self._refuse_newer(error, f"the manifest of {table}", self._manifest_key(*place))
            raise self._damaged("the manifest cannot be read", *place) from error
        if manifest.place != place:
            spoken_of = " ".join(filter(None, manifest.place))
            raise self._damaged(f"the manifest speaks of {spoken_of}", *place)
        return manifest

    def _check_files(self, manifest: Manifest) -> None:
        """Every file is there, of the size and with the bytes that the manifest says; hashed once per process."""
        for file in manifest.files:
            key = f"{self._prefix(*manifest.place)}/{file.path}"
            if problem := self._verified.fault(key, file):
                raise self._damaged(problem, *manifest.place, file.path)
        counted = {"rows/": manifest.rows, "dropped/": manifest.dropped}
        for part, expected in counted.items():
            found = sum(file.rows for file in manifest.files if file.path.startswith(part))
            if found != expected:
                raise self._damaged(f"{expected:,} rows are counted and the files hold {found:,}", *manifest.place)


def _made_by(table: str, partition: str | None = None) -> str:
    if table == "rollouts":
        return "gongqing train RECIPE"
    if table == "raw_posts":
        return "gongqing crawl SOURCE"
    kept_as = "" if partition is None else f" --as {shlex.quote(partition)}"
    return f"gongqing import NAME PATH{kept_as}" if table in PARTITIONED else "gongqing refresh"


def _validated(name: str, schema: type[Table], frame: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """`frame` in the columns, types and order of its schema, by key; InvalidRows where it breaks the rules."""
    try:
        valid = schema.validate(frame.lazy().collect(), cast=True)
        # dataframely leaves the fields of a struct in the order in which they came: the hash would be another.
        return valid.match_to_schema(schema.polars_schema()).sort(schema.key())
    except (dy.exc.ValidationError, dy.exc.SchemaError, pl.exceptions.PolarsError) as error:
        # A polars error quotes values, and a value may be what somebody wrote: it is not chained either. What comes
        # after an empty line is polars' query plan.
        told = type(error).__name__ if isinstance(error, pl.exceptions.PolarsError) else str(error).split("\n\n")[0]
        raise InvalidRows(
            f"rows break the schema of {name}: {told}",
            where=f"schemas.tables.TABLES[{name.partition(' ')[0]!r}]",
            hint="mend the step that made them; nothing was written",
        ) from None


def _alike(one: Run, other: Run) -> bool:
    """Whether they say the same; when does not matter."""
    return one.inputs == other.inputs and one.note == other.note


def _as_today(manifest: Manifest, schema: type[Table]) -> bool:
    """Whether the version was written under the schema that the table has now."""
    return (manifest.schema_version, _types(manifest.columns)) == (schema.version, _types(_columns(schema)))


def _declared(rows: pl.DataFrame, manifest: Manifest) -> pa.Schema:
    """The Arrow schema that a version was written in, whatever its table has become since."""
    described = {column.name: column.description for column in manifest.columns}
    return plain_schema(rows.select(list(described)), described)


def _types(columns: list[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]


def _columns(schema: type[Table]) -> list[Column]:
    described = schema.describe()
    return [
        Column(name=field.name, type=str(field.type), description=described[field.name])
        for field in schema.arrow_schema()
    ]


def _reasons(dropped: pl.DataFrame) -> dict[str, int]:
    counted = dropped.group_by("unit", "reason").len().sort("len", "unit", "reason", descending=[True, False, False])
    return {f"{unit}: {reason}": count for unit, reason, count in counted.iter_rows()}
