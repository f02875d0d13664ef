"""The chunks of a version: its files, of the rows that were kept and of those that were dropped."""

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from pipelines.errors import InvalidRows
from pipelines.store.manifest import Chunk
from pipelines.store.parquet import Cut, content_of, gathered, version_of, write_parquet
from pipelines.store.storage import Storage
from schemas.table import Dropped, Table
from schemas.tables import TABLES

PARTS = ("rows", "dropped")
Rows = tuple[pl.DataFrame, pl.DataFrame]  # kept, dropped
# The key and the entry of a file that is there, by its part and what it holds or is made from.
AtHand = dict[tuple[str, str], tuple[str, Chunk]]


def schemas(table: str) -> tuple[type[Table], type[Table]]:
    """The schemas of both parts of a table."""
    return TABLES[table], Dropped


def part_of(file: Chunk) -> str:
    """`rows` or `dropped`."""
    return file.path.partition("/")[0]


def of_part(files: Iterable[Chunk], part: str) -> list[Chunk]:
    """The files of `rows` or of `dropped`, in their order."""
    return [file for file in files if part_of(file) == part]


def version_of_files(table: str, files: Iterable[Chunk]) -> str:
    """The version that these files are, all of them chunks with a hash of their content."""
    kept, dropped = (of_part(files, part) for part in PARTS)
    return version_of(TABLES[table], table, kept, dropped)


class Staged:
    """The files of a version that is being built in a staging folder, new ones and links to some that are at hand."""

    def __init__(self, storage: Storage, folder: Path, table: str, at_hand: AtHand) -> None:
        self.folder, self.files = folder, list[Chunk]()
        self._storage, self._table, self._at_hand = storage, table, at_hand

    def add_cut(self, rows: Rows, cuts: Iterable[list[Cut]]) -> None:
        """Adds frames that were cut into chunks; a chunk whose content is at hand is linked."""
        for part, frame, schema, chunks in zip(PARTS, rows, schemas(self._table), cuts, strict=True):
            for number, chunk in enumerate(chunks):
                path = f"{part}/part-{number:05d}.parquet"
                if (part, chunk.content) in self._at_hand:
                    self._link(path, *self._at_hand[part, chunk.content])
                else:
                    self._write(path, gathered(frame, chunk.start, chunk.rows), schema, chunk.content)

    def has(self, made_from: str) -> bool:
        """Whether what is made from this is at hand."""
        return all((part, made_from) in self._at_hand for part in PARTS)

    def add_made(self, number: int, made_from: str, rows: Rows | None) -> None:
        """Adds a chunk of each part; without rows, links to what is at hand."""
        for place, (part, schema) in enumerate(zip(PARTS, schemas(self._table), strict=True)):
            path = f"{part}/part-{number:05d}.parquet"
            if rows is None:
                self._link(path, *self._at_hand[part, made_from])
            else:
                self._write(path, rows[place], schema, content_of(rows[place]), made_from)

    def _link(self, path: str, key: str, file: Chunk) -> None:
        self._storage.link(key, self.folder / path)
        self.files.append(file.model_copy(update={"path": path}))

    def _write(self, path: str, rows: pl.DataFrame, schema: type[Table], content: str, made_from: str = "") -> None:
        file = write_parquet(self.folder, path, rows, schema.arrow_schema())
        self.files.append(Chunk(**file.model_dump(), content=content, made_from=made_from))

    def read_dropped(self) -> pl.DataFrame:
        """Unit and reason of the rows that were dropped."""
        paths = [self.folder / file.path for file in of_part(self.files, "dropped")]
        return pl.read_parquet(paths, columns=["unit", "reason"])

    def require_single_keys(self) -> None:
        """Raises InvalidRows where two chunks have a row of the same key."""
        for part, schema in zip(PARTS, schemas(self._table), strict=True):
            paths = [self.folder / file.path for file in of_part(self.files, part)]
            require_single_keys(f"{self._table} ({part})", pl.read_parquet(paths, columns=schema.key()))


def require_single_keys(name: str, keys: pl.DataFrame) -> None:
    """Raises InvalidRows where two rows have the same key, of which `keys` are the columns."""
    if n_doubled := keys.height - keys.n_unique():
        raise InvalidRows(
            f"{n_doubled:,} rows of {name} have the key of another: {', '.join(keys.columns)}",
            where=f"schemas.tables.TABLES[{name.partition(' ')[0]!r}]",
            hint="the same row came in twice, by two data sets or sites; nothing was written",
        )
