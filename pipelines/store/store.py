"""The store: every table as immutable versions, and one pointer each to the current one.

::

    <root>/<table>[/<partition>]/current.json             the pointer
    <root>/<table>[/<partition>]/<version>/manifest.json
    <root>/<table>[/<partition>]/<version>/rows/*.parquet      its chunks
    <root>/<table>[/<partition>]/<version>/dropped/*.parquet

or the same below `data/` of a bucket (`pipelines.store.object_storage`).

A version is built in a scratch folder, made durable, published at once, and pointed to last. So whatever happens on
the way, the pointer leads to a whole version: the one before or the new one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import dataframely as dy
import polars as pl
from pydantic import ValidationError

from pipelines.errors import DamagedVersion, InvalidRows, NewerHome, NoVersion, OlderSchema, RequestError, UnknownName
from pipelines.store.address import VERSION, Address
from pipelines.store.chunks import (
    PARTS,
    AtHand,
    Rows,
    Staged,
    of_part,
    part_of,
    require_single_keys,
    schemas,
    version_of_files,
)
from pipelines.store.forms import Diff, diff, differing, filled
from pipelines.store.manifest import MANIFEST, Chunk, Column, File, Manifest, Pointer, Run, Tombstone
from pipelines.store.object_storage import storage_of
from pipelines.store.parquet import canonical_hash, content_of, cut, version_of, write_parquet
from pipelines.store.storage import Verified
from schemas.table import Dropped, Table, plain_schema
from schemas.tables import PARTITIONED, STANDING, TABLES

# Gets the rows of a part of a version, and gives what is left of them, and how many lost a part.
Remove = Callable[[str, pl.DataFrame], tuple[pl.DataFrame, int]]

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
    """Versioned tables below `root`, or in the bucket that the settings of its home name. Several processes may use it
    at once.
    """

    def __init__(self, root: Path | str) -> None:
        self.storage = storage_of(Path(root))
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

        `kept` is cast to the table's schema and validated by its rules; `dropped` are rows of `schemas.table.Dropped`.
        A run is noted with its `parents`, the versions of its `code`, and the `settings` that the step read; `note` is
        what else to remember: it decides nothing.

        Raises InvalidRows where rows break the schema, StorageFull without room: the pointer has not moved then.
        """
        rows = _validated(table, kept, Dropped.create_empty() if dropped is None else dropped)
        cuts = [cut(frame, schema.key()) for frame, schema in zip(rows, schemas(table), strict=True)]
        run = _run(parents, code, settings, note)
        address = Address(table, partition).at(version_of(TABLES[table], table, *cuts))
        while not self._add_run(address, run):
            with self.storage.staging() as folder:
                staged = Staged(self.storage, folder, table, self._files_at_hand(address, "content"))
                staged.add_cut(rows, cuts)
                self._publish(address, staged, run)
        return self._point_to(address, run)

    def write_chunks(
        self,
        table: str,
        names: Sequence[str],
        make: Callable[[Sequence[int]], Iterator[Rows]],
        parents: Iterable[Version] = (),
        *,
        code: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> Version:
        """Make chunks, in their order, the current version of a table.

        Each has the name of what it is made from (`File.made_from`). `make` is called with the numbers of those of
        which the current version has none of that name, and gives them in this order, as `(kept, dropped)`. Raises as
        `write` does.
        """
        run, address = _run(parents, code, settings), Address(table)
        with self.storage.staging() as folder:
            staged = Staged(self.storage, folder, table, self._files_at_hand(address, "made_from"))
            missing = [number for number, name in enumerate(names) if not staged.has(name)]
            made = make(missing) if missing else iter(())
            for number, name in enumerate(names):
                staged.add_made(number, name, None if staged.has(name) else _validated(table, *next(made)))
            next(made, None)  # so that it comes to its end, and a cluster with it
            if not staged.files:
                staged.add_made(0, "", _nothing(table))
            staged.require_single_keys()
            address = address.at(version_of_files(table, staged.files))
            while not self._add_run(address, run, staged.files):
                self._publish(address, staged, run)
        return self._point_to(address, run)

    def _point_to(self, address: Address, run: Run) -> Version:
        self._point(address, lambda _: Pointer(version=address.version, inputs=run.inputs))
        return self.version(address.table, address.version, address.partition)

    def _files_at_hand(self, address: Address, by: str) -> AtHand:
        """The whole files of the current version that have this field, `content` or `made_from`, by its value."""
        at_hand: AtHand = {}
        with suppress(DamagedVersion, NoVersion):
            manifest = self.version(address.table, partition=address.partition).manifest
            known = Address(*manifest.place)
            for file in manifest.files if _is_todays(manifest) else ():
                key, value = self._key(known, file), getattr(file, by)
                if value and self._verified.fault(key, file) is None:
                    at_hand[part_of(file), value] = key, file
        return at_hand

    def _publish(self, address: Address, staged: Staged, run: Run) -> None:
        schema = TABLES[address.table]
        runs = [run]
        with suppress(DamagedVersion):  # of a version that is repaired, where its manifest can be read
            runs = self._manifest(address).runs
        manifest = Manifest(
            table=address.table,
            partition=address.partition,
            version=address.version,
            schema_version=schema.version,
            columns=list(_columns(schema)),
            **_counts(staged.files, staged.read_dropped()),
            runs=runs,
        )
        (staged.folder / MANIFEST).write_bytes(manifest.to_bytes())
        self.storage.publish(staged.folder, address.prefix, damaged=lambda: not self._is_complete(address))
        self._check_files(self._manifest(address))

    def _is_complete(self, address: Address) -> bool:
        """Whether a version holds everything that it is named after: an erased one lacks rows."""
        try:
            manifest = self._manifest(address)
            self._check_files(manifest)
        except DamagedVersion:
            return False
        return not manifest.erasures and _is_todays(manifest)

    def _add_run(self, address: Address, run: Run, files: Iterable[Chunk] = ()) -> bool:
        """Put `run` last in the manifest of a version that is there and whole, and say what it made its `files` from;
        False where there is none.
        """
        made_from = {file.path: {"made_from": file.made_from} for file in files}
        while self._is_complete(address):
            old = self.storage.get(address.manifest)
            manifest = self._manifest(address)
            renamed = [file.model_copy(update=made_from.get(file.path)) for file in manifest.files]
            if _equal(manifest.runs[-1], run) and renamed == manifest.files:
                return True
            runs = [*(known for known in manifest.runs if not _equal(known, run)), run]
            changed = manifest.model_copy(update={"runs": runs, "files": renamed})
            if self.storage.swap(address.manifest, old, changed.to_bytes()):
                return True
        return False

    def _point(self, address: Address, move: Callable[[bytes | None], Pointer]) -> None:
        while True:
            old = self.storage.get(address.pointer)
            if self.storage.swap(address.pointer, old, move(old).to_bytes()):
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

        self._point(Address(table, partition), move)
        return replace(chosen, current=True)

    def erase(self, version: Version, remove: Remove, *, erasure: str) -> Version:
        """Leave a version without some rows. It keeps its name, since others pinned it, and has a tombstone.

        `remove` gets `rows` or `dropped` and the rows of a file, and gives what is left of them, and how many of these
        lost a part. A file that loses nothing stays. New files are added, the manifest is swapped, the old files go:
        whenever a process is killed the version reads as before or as after, and the same call (the same `erasure`)
        again finishes.
        """
        address = Address(*version.manifest.place)
        while not (manifest := self._manifest(address)).erased_by(erasure):
            old = self.storage.get(address.manifest)
            files, changed = [], 0
            for number, file in enumerate(manifest.files):
                rows = self.storage.scan([self._key(address, file)]).collect()
                left, n_changed = remove(part_of(file), rows)
                path = f"{part_of(file)}/{erasure}-{number:05d}.parquet"
                files.append(file if left.equals(rows) else self._add_file(manifest, path, left, bool(file.content)))
                changed += n_changed
            counts = _counts(files, self._scan_files(address, files, "dropped").collect())
            tombstone = Tombstone(
                erasure=erasure,
                rows=manifest.rows - counts["rows"],
                dropped=manifest.dropped - counts["dropped"],
                changed=changed,
                content=self._content(address, files) if _is_todays(manifest) else "",
            )
            erased = manifest.model_copy(update=counts | {"erasures": [*manifest.erasures, tombstone]})
            self.storage.swap(address.manifest, old, erased.to_bytes())
        named = {address.manifest, *(self._key(address, file) for file in manifest.files)}
        for other in set(self.storage.files(address.prefix)) - named:
            self.storage.remove(other)
        return self.version(version.table, version.version, version.partition)

    def _add_file(self, manifest: Manifest, path: str, rows: pl.DataFrame, hashed: bool) -> Chunk:
        """Adds a file to a version, in the schema that this was written in, whatever its table has become since."""
        described = {column.name: column.description for column in manifest.columns}
        is_dropped = path.startswith("dropped/")
        declared = Dropped.arrow_schema() if is_dropped else plain_schema(rows.select(list(described)), described)
        with self.storage.staging() as staged:
            file = write_parquet(staged, path, rows, declared)
            self.storage.add(staged / path, self._key(Address(*manifest.place), file))
        return Chunk(**file.model_dump(), content=content_of(rows) if hashed else "")

    def make_stale(self, table: str) -> None:
        """The next refresh makes the table again, whatever it was made from."""
        self._point(
            Address(table), lambda old: Pointer.model_validate_json(old or b"").model_copy(update={"inputs": ""})
        )

    def discard(self, version: Version) -> int:
        """Remove a version that is not the current one; gives the bytes that are free now."""
        if (pointer := self.pointer(version.table, version.partition)) and pointer.version == version.version:
            raise RequestError(f"{version.name}@{version.version} is the current version", hint="promote another first")
        return self.storage.discard(Address(*version.manifest.place).prefix)

    # Reading

    def read(self, table: str, version: str | None = None, partition: str | None = None) -> pl.LazyFrame:
        """The rows of a version (default: the current one); of all partitions together where none is named.

        Columns that came after it was written, and may be null, are null; a version that differs in more is read as it
        was written (`require_todays`).

        Raises NoVersion, DamagedVersion where a file is not what its manifest says, OlderSchema where partitions in
        several schemas are read together.
        """
        chosen = self._chosen(table, version, partition)
        if all(_is_todays(one.manifest) for one in chosen):
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

    def validate(self, version: Version) -> int:
        """How many rows a version has, all held against the rules of its table. Raises InvalidRows.

        They are read chunk by chunk, so that memory does not follow the table.
        """
        schema, chunks = TABLES[version.table], of_part(version.manifest.files, "rows")
        for chunk in chunks:
            _valid(version.table, schema, self.read_chunk(version, chunk))
        if len(chunks) > 1:
            keys = self._scan([version], "rows").select(schema.key()).collect()
            require_single_keys(version.table, keys)
        return version.rows

    def missing(self, version: Version) -> str | None:
        """What a look at its files without reading them says is wrong with a version, in words; None for nothing."""
        address = Address(*version.manifest.place)
        for file in version.manifest.files:
            status = self.storage.stat(self._key(address, file))
            if status is None or status[0] != file.bytes:
                return f"{version.name} is damaged: a file is missing, or not as long as it was written"
        return None

    def require_todays(self, version: Version) -> None:
        """Raises OlderSchema, or NewerHome, where a version's rows cannot be brought into today's schema."""
        schema, manifest = TABLES[version.table], version.manifest
        if _is_todays(manifest):
            return
        address = Address(*manifest.place)
        where = self.storage.uri(address.prefix)
        versions = f"schema version {manifest.schema_version}, and this gongqing has {schema.version}"
        if manifest.schema_version > schema.version:
            raise NewerHome(f"{version.name} was written by a newer gongqing: {versions}", where=where, hint=_UPDATE)
        columns = differing(self._scan([version], "rows").collect_schema(), schema)
        if not columns and manifest.schema_version == schema.version:
            return
        which = f"; other columns: {', '.join(columns)}" if columns else ""
        raise OlderSchema(
            f"{version.name} was written by an older gongqing: {versions}{which}",
            where=where,
            hint=self._recovery_hint(address),
        )

    def _chosen(self, table: str, version: str | None, partition: str | None) -> list[Version]:
        if table in PARTITIONED and partition is None and version is None:
            chosen = self.current(table)
            if not chosen:
                raise Address(table).no_version()
            return chosen
        return [self.version(table, version, partition)]

    def _scan(self, chosen: Iterable[Version], part: str) -> pl.LazyFrame:
        keys = []
        for one in chosen:
            self._check_files(one.manifest)
            address = Address(*one.manifest.place)
            keys += [self._key(address, file) for file in of_part(one.manifest.files, part)]
        return self.storage.scan(keys)

    def read_chunk(self, version: Version, file: Chunk) -> pl.LazyFrame:
        """The rows of one file of a version, in today's schema (see `require_todays`)."""
        address = Address(*version.manifest.place)
        self._check_file(address, file)
        rows = self._scan_files(address, [file], part_of(file))
        return filled(rows, TABLES[version.table]) if part_of(file) == "rows" else rows

    def _scan_files(self, address: Address, files: Iterable[Chunk], part: str) -> pl.LazyFrame:
        return self.storage.scan(self._key(address, file) for file in of_part(files, part))

    def _hashed(self, address: Address, file: Chunk) -> Chunk:
        rows = self._scan_files(address, [file], part_of(file)).collect()
        return file.model_copy(update={"content": content_of(rows)})

    def _content(self, address: Address, files: list[Chunk]) -> str:
        """What a version of these files in today's schema is named after."""
        if all(file.content for file in files):
            return version_of_files(address.table, files)
        kept, dropped = (self._scan_files(address, files, part).collect() for part in PARTS)
        return canonical_hash(TABLES[address.table], address.table, kept, dropped)

    def version(self, table: str, version: str | None = None, partition: str | None = None) -> Version:
        """A version by its id or the beginning of it; the current one by default."""
        address = Address(table, partition)
        pointer = None
        with suppress(*([] if version is None else [DamagedVersion])):  # it hides no version that is named
            pointer = self.pointer(table, partition)
        if version is not None:
            version = self._in_full(address, version)
        elif pointer is not None:
            version = pointer.version
        else:
            raise address.no_version()
        manifest = self._manifest(address.at(version))
        is_current = pointer is not None and pointer.version == version
        return Version(table, partition, version, manifest.rows, manifest.dropped, is_current, manifest)

    def _in_full(self, address: Address, beginning: str) -> str:
        known = self.version_ids(address.table, address.partition)
        matches = [version for version in known if beginning and version.startswith(beginning)]
        if len(matches) != 1:
            raise UnknownName(f"version of {address.table}", beginning, known)
        return matches[0]

    def versions(self, table: str, partition: str | None = None) -> list[Version]:
        """All versions of a table or partition, oldest first; damaged ones are left out (`verify` names them)."""
        readable = []
        for version in self.version_ids(table, partition):
            with suppress(DamagedVersion):
                readable.append(self.version(table, version, partition))
        return sorted(readable, key=lambda one: (one.manifest.runs[0].at, one.version))

    def version_ids(self, table: str, partition: str | None = None) -> list[str]:
        """The ids of all versions that are there, whole or damaged."""
        folder = Address(table, partition).folder
        return [name for name in self.storage.published(folder) if VERSION.fullmatch(name)]

    def partitions(self, table: str) -> list[str]:
        """The partitions of a partitioned table."""
        return [unquote(name) for name in self.storage.children(table)] if table in PARTITIONED else []

    def places(self, table: str) -> list[str | None]:
        """The partitions of a table; None alone where it has none."""
        return [*self.partitions(table)] if table in PARTITIONED else [None]

    def current(self, table: str) -> list[Version]:
        """The current version of a table, or of each of its partitions; none where nothing was written."""
        places = self.places(table)
        return [self.version(table, partition=place) for place in places if self.pointer(table, place) is not None]

    def diff(self, table: str, a: str, b: str, partition: str | None = None) -> Diff:
        """What version `b` has that `a` has not, by the key of the table."""
        before = self.read(table, a, partition).collect()
        after = self.read(table, b, partition).collect()
        return diff(before, after, TABLES[table].key())

    def pointer(self, table: str, partition: str | None = None) -> Pointer | None:
        """The pointer of a table, or None where nothing was written."""
        address = Address(table, partition)
        content = self.storage.get(address.pointer)
        if content is None:
            return None
        try:
            return Pointer.model_validate_json(content)
        except ValidationError as error:
            self._refuse_newer(error, f"the pointer of {table}", address.pointer)
            known = ", ".join(self.version_ids(table, partition))
            raise DamagedVersion(
                f"the pointer of {address.name} cannot be read",
                where=self.storage.uri(address.pointer),
                hint=f"choose a version: {address.promote_command()} (there are: {known})",
            ) from error

    def verify(self, version: Version) -> None:
        """Read everything again and compare with the manifest and with the version itself. Raises DamagedVersion."""
        manifest = version.manifest
        self._verified.clear()
        self._check_files(manifest)
        address = Address(*manifest.place)
        if not _is_todays(manifest):
            return
        files = [self._hashed(address, file) if file.content else file for file in manifest.files]
        content = self._content(address, files)
        named = manifest.erasures[-1].content if manifest.erasures else version.version
        if content != named or files != manifest.files:
            # Its manifest agrees with its files, so that a write would take it for whole.
            raise self._damaged(
                address, f"the rows are those of version {content}: remove this folder first", f"{address.prefix}/"
            )

    # Damage

    def _key(self, address: Address, file: File) -> str:
        return self.storage.key(address.prefix, file)

    def _damaged(self, address: Address, problem: str, key: str | None = None) -> DamagedVersion:
        what = f"{address.name} is damaged: {problem}"
        if address.table in STANDING:
            what += f"; {address.table} keeps what was assigned once, and cannot be made again"
        where = self.storage.uri(key or address.manifest)
        return DamagedVersion(what, where=where, hint=self._recovery_hint(address))

    def _recovery_hint(self, address: Address) -> str:
        others = [one for one in self.version_ids(address.table, address.partition) if one != address.version]
        return address.recovery_hint(self.storage.uri(address.folder), others)

    def _refuse_newer(self, error: ValidationError, what: str, key: str) -> None:
        """Raises NewerHome where the only fault of a document are fields that are unknown here."""
        problems = error.errors(include_url=False, include_input=False)
        if all(problem["type"] == "extra_forbidden" for problem in problems):
            fields = ", ".join(sorted({".".join(map(str, problem["loc"])) for problem in problems}))
            raise NewerHome(
                f"the home was written by a newer gongqing: {what} has fields that this one does not know: {fields}",
                where=self.storage.uri(key),
                hint=_UPDATE,
            ) from error

    def _manifest(self, address: Address) -> Manifest:
        """The manifest of a version. Raises DamagedVersion where it is missing, unreadable, or of another version."""
        content = self.storage.get(address.manifest)
        if content is None:
            raise self._damaged(address, "a version without a manifest")
        try:
            manifest = Manifest.model_validate_json(content)
        except ValidationError as error:
            self._refuse_newer(error, f"the manifest of {address.table}", address.manifest)
            raise self._damaged(address, "the manifest cannot be read") from error
        if manifest.place != (address.table, address.partition, address.version):
            raise self._damaged(address, f"the manifest speaks of {' '.join(filter(None, manifest.place))}")
        return manifest

    def _check_files(self, manifest: Manifest) -> None:
        """Every file is there, of the size and with the bytes that the manifest says; hashed once per process."""
        address = Address(*manifest.place)
        for file in manifest.files:
            self._check_file(address, file)
        for part, expected in {"rows": manifest.rows, "dropped": manifest.dropped}.items():
            rows = sum(file.rows for file in of_part(manifest.files, part))
            if rows != expected:
                raise self._damaged(address, f"{expected:,} rows are counted and the files hold {rows:,}")

    def _check_file(self, address: Address, file: Chunk) -> None:
        key = self._key(address, file)
        if problem := self._verified.fault(key, file):
            raise self._damaged(address, problem, key)


def _validated(table: str, kept: pl.DataFrame | pl.LazyFrame, dropped: pl.DataFrame | pl.LazyFrame) -> Rows:
    return _valid(table, TABLES[table], kept), _valid(f"{table} (dropped)", Dropped, dropped)


def _nothing(table: str) -> Rows:
    return TABLES[table].create_empty(), Dropped.create_empty()


def _valid(name: str, schema: type[Table], frame: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """`frame` in the columns, types and order of its schema, by key; InvalidRows where it breaks the rules."""
    try:
        valid = schema.validate(frame.lazy().collect(), cast=True)
        # dataframely leaves the fields of a struct in the order in which they came: the hash would be another.
        return valid.match_to_schema(schema.polars_schema()).sort(schema.key())
    except (dy.exc.ValidationError, dy.exc.SchemaError, pl.exceptions.PolarsError) as error:
        # A polars error quotes values, and a value may be what somebody wrote: it is not chained either. What comes
        # after an empty line is polars' query plan.
        is_polars = isinstance(error, pl.exceptions.PolarsError)
        problem = type(error).__name__ if is_polars else str(error).split("\n\n")[0]
        raise InvalidRows(
            f"rows break the schema of {name}: {problem}",
            where=f"schemas.tables.TABLES[{name.partition(' ')[0]!r}]",
            hint="mend the step that made them; nothing was written",
        ) from None


def _run(
    parents: Iterable[Version],
    code: str,
    settings: Mapping[str, Any] | None,
    note: Mapping[str, Any] | None = None,
) -> Run:
    made_from = {parent.name: parent.version for parent in parents}
    return Run(parents=made_from, code=code, settings=dict(settings or {}), note=dict(note or {}))


def _equal(one: Run, other: Run) -> bool:
    """Whether two runs are the same but for their time."""
    return one.inputs == other.inputs and one.note == other.note


def _is_todays(manifest: Manifest) -> bool:
    """Whether the version was written under the schema that the table has now."""
    schema = TABLES[manifest.table]
    written, today = ([(column.name, column.type) for column in one] for one in (manifest.columns, _columns(schema)))
    return manifest.schema_version == schema.version and written == today


@cache
def _columns(schema: type[Table]) -> tuple[Column, ...]:
    """The columns of a table as a manifest has them."""
    texts, fields = schema.describe(), schema.arrow_schema()
    return tuple(Column(name=one.name, type=str(one.type), description=texts[one.name]) for one in fields)


def _counts(files: list[Chunk], dropped: pl.DataFrame) -> dict[str, Any]:
    """What a manifest says of its files."""
    rows, n_dropped = (sum(file.rows for file in of_part(files, part)) for part in PARTS)
    return {"files": files, "rows": rows, "dropped": n_dropped, "reasons": _reasons(dropped)}


def _reasons(dropped: pl.DataFrame) -> dict[str, int]:
    counts = dropped.group_by("unit", "reason").len().sort("len", "unit", "reason", descending=[True, False, False])
    return {f"{unit}: {reason}": count for unit, reason, count in counts.iter_rows()}
