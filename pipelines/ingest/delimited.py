"""The rows of a CSV file, by column."""

import csv
import io
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from pipelines.errors import UnreadableFile
from pipelines.ingest.forms import shown
from pipelines.ingest.records import MAX_RECORD_CHARS, Broken, Source

_LONGEST_READ = 32 * MAX_RECORD_CHARS  # characters of a field


class Row(NamedTuple):
    """A row, its place, and its values by column."""

    where: str
    line: int
    values: dict[str, str]


class Delimited:
    """A CSV file with a header, read once. A row of more or fewer fields than the header is Broken: nothing is guessed.

    Raises UnreadableFile for a header that cannot be read, or that has two columns of one name.
    """

    def __init__(self, source: Source, delimiter: str = ",") -> None:
        # For the whole process, which reads CSV nowhere else. A field that is too long is read to its end.
        csv.field_size_limit(_LONGEST_READ)
        self.name = source.name
        self._reader = csv.reader(io.StringIO(source.text, newline=""), delimiter=delimiter, strict=True)
        try:
            self.header = [name.strip() for name in next(self._reader, [])]
        except csv.Error as error:
            raise self._headless(f"its first line cannot be read ({error})") from error
        if any(count > 1 for name, count in Counter(self.header).items() if name):
            raise self._headless("two of its columns have the same name")

    def rows(self) -> Iterator[Row | Broken]:
        """The rows beneath the header, each with the number of the line that it begins on."""
        while True:
            line = self._reader.line_num + 1
            where = f"{self.name}:{line}"
            try:
                fields = next(self._reader)
            except StopIteration:
                return
            except csv.Error as error:
                # It has one type for all errors; behind a field beyond the limit nobody knows where that field ends.
                if "field limit" in str(error):
                    yield Broken(where, "too_long", f"{error}; the file was read no further")
                    return
                yield Broken(where, "bad_csv", f"{error}; up to line {self._reader.line_num}")
                continue
            if sum(map(len, fields)) > MAX_RECORD_CHARS:
                yield Broken(where, "too_long", f"more than {MAX_RECORD_CHARS:,} characters")
            elif fields and len(fields) != len(self.header):
                yield Broken(where, "bad_csv", f"{len(fields)} fields under {len(self.header)} columns")
            elif fields:
                yield Row(where, line, dict(zip(self.header, fields, strict=True)))

    def named_rows(self, aliases: dict[str, tuple[str, ...]], required: tuple[str, ...]) -> Iterator[Row | Broken]:
        """The rows by our names of the columns, known by aliases in any case; UnreadableFile without a required one."""
        by_key = {_key(name): name for name in self.header}
        theirs = {
            ours: [by_key[_key(name)] for name in names if _key(name) in by_key] for ours, names in aliases.items()
        }
        columns = {ours: names[0] for ours, names in theirs.items() if names}
        if missing := [name for name in required if name not in columns]:
            has = ", ".join(map(shown, self.header)) or "none"
            raise UnreadableFile(
                f"the file has no column for {', '.join(missing)}; its columns: {has}",
                where=self.name,
                hint="; ".join(f"{name}: one of {', '.join(aliases[name])}" for name in missing),
            )
        for row in self.rows():
            if isinstance(row, Broken):
                yield row
            else:
                yield row._replace(values={ours: row.values[name] for ours, name in columns.items()})

    def _headless(self, what: str) -> UnreadableFile:
        return UnreadableFile(f"the file is no CSV with a header: {what}", where=self.name, hint="correct it")


def _key(name: str) -> str:
    """A column's name without case, spaces and the signs between words."""
    return "".join(char for char in name.casefold() if char.isalnum())
