"""The rows of a CSV file, by column."""

import _csv
import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pipelines.errors import UnreadableFile
from pipelines.ingest.fields import shown
from pipelines.ingest.records import MAX_RECORD_CHARS, Broken, Source

_LONGEST_READ = 32 * MAX_RECORD_CHARS  # characters of a field


class Row(NamedTuple):
    """A row, its place, and its values by column."""

    where: str
    line: int
    values: dict[str, str]


@dataclass(frozen=True, slots=True)
class Delimited:
    """A CSV file with a header. A row of more or fewer fields than the header is Broken: none is guessed."""

    source: Source
    delimiter: str = ","

    @property
    def header(self) -> list[str]:
        """The names of the columns. Raises UnreadableFile where they cannot be read, or one stands there twice."""
        try:
            names = [name.strip() for name in next(self._reader(), [])]
        except csv.Error as error:
            raise self._headless(f"its first line cannot be read ({error})") from error
        if any(count > 1 for name, count in Counter(names).items() if name):
            raise self._headless("two of its columns have the same name")
        return names

    def rows(self) -> Iterator[Row | Broken]:
        """The rows beneath the header, each with the number of the line that it begins on."""
        header = self.header
        reader = self._reader()
        next(reader, None)
        while True:
            line = reader.line_num + 1
            where = f"{self.source.name}:{line}"
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                # As the reader of CSV says it; there is one type for all that it says.
                if "field limit" in str(error):  # what follows is the rest of the field, and nobody knows where it ends
                    yield Broken(where, "too_long", f"{error}; the file was read no further")
                    return
                yield Broken(where, "bad_csv", f"{error}; up to line {reader.line_num}")
                continue
            if not fields:
                continue
            if sum(map(len, fields)) > MAX_RECORD_CHARS:
                yield Broken(where, "too_long", f"more than {MAX_RECORD_CHARS:,} characters")
                continue
            if len(fields) != len(header):
                yield Broken(where, "bad_csv", f"{len(fields)} fields under {len(header)} columns")
                continue
            yield Row(where, line, dict(zip(header, fields, strict=True)))

    def columns(self, aliases: dict[str, tuple[str, ...]], required: tuple[str, ...]) -> dict[str, str]:
        """Our names → this file's columns, by alias, whatever the case and the signs between words.

        Raises UnreadableFile where a required column is missing.
        """
        by_fold = {fold(name): name for name in self.header}
        found: dict[str, str] = {}
        for ours, names in aliases.items():
            theirs = next((by_fold[fold(name)] for name in names if fold(name) in by_fold), None)
            if theirs is not None:
                found[ours] = theirs
        missing = [name for name in required if name not in found]
        if missing:
            has = ", ".join(map(shown, self.header)) or "none"
            raise UnreadableFile(
                f"the file has no column for {', '.join(missing)}; its columns: {has}",
                where=self.source.name,
                hint="; ".join(f"{name}: one of {', '.join(aliases[name])}" for name in missing),
            )
        return found

    def _headless(self, what: str) -> UnreadableFile:
        return UnreadableFile(f"the file is no CSV with a header: {what}", where=self.source.name, hint="mend it")

    def _reader(self) -> "_csv.Reader":
        # Of the whole process, which reads CSV nowhere else. A field that is too long is read to its end.
        csv.field_size_limit(_LONGEST_READ)
        return csv.reader(io.StringIO(self.source.text, newline=""), delimiter=self.delimiter, strict=True)


def fold(name: str) -> str:
    """A column's name without case, spaces and the signs between words."""
    return "".join(char for char in name.casefold() if char.isalnum())
