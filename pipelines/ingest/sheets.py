"""The rows of a spreadsheet (.xlsx), by column: values as they were last stored."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from pipelines.core.workbooks import DAMAGED, Workbook, hint_for
from pipelines.errors import UnreadableFile
from pipelines.ingest.files import require_size
from pipelines.ingest.forms import shown
from pipelines.ingest.records import MAX_RECORD_CHARS, Broken, Source


class SheetRow(NamedTuple):
    """A row, its place, and its values by column: texts, numbers, truth values, dates; an empty text where none is."""

    where: str
    values: dict[str, Any]


def rows(source: Source, sheet: str | None) -> Iterator[SheetRow | Broken]:
    """The rows beneath the first one that is not empty, which names the columns; columns without a name are not read.

    Raises UnreadableFile for a file that is no spreadsheet, has no such sheet, two columns of one name, or is absurdly
    large once unpacked.
    """
    try:
        yield from _rows(source, sheet)
    except DAMAGED as error:
        raise UnreadableFile(
            "the file is no spreadsheet of the form .xlsx, or is damaged",
            where=source.name,
            hint=hint_for(source.data),
        ) from error


def _rows(source: Source, sheet: str | None) -> Iterator[SheetRow | Broken]:
    book = Workbook(source.data)
    require_size(source.name, book.unpacked_bytes)
    header: dict[int, str] = {}
    for number, row in book.rows(_part(book, source.name, sheet)):
        where = f"{source.name}:{number}"
        cells = {at: cell.value for at, cell in row.items() if cell.value not in (None, "")}
        if not header:
            named = ((at, str(value).strip()) for at, value in cells.items() if isinstance(value, str | int))
            header = {at: name for at, name in named if name}
            if any(times > 1 for times in Counter(header.values()).values()):
                raise UnreadableFile(
                    "two columns of the sheet have the same name", where=where, hint="give each its own"
                )
        elif sum(len(value) for value in cells.values() if isinstance(value, str)) > MAX_RECORD_CHARS:
            yield Broken(where, "too_long", f"more than {MAX_RECORD_CHARS:,} characters")
        elif any(at in header for at in cells):
            yield SheetRow(where, {name: cells.get(at, "") for at, name in header.items()})


def _part(book: Workbook, name: str, wanted: str | None) -> str:
    """The part of the sheet `wanted`, of the first one without a name."""
    parts = book.sheets()
    part = next(iter(parts.values()), None) if wanted is None else parts.get(wanted)
    if part is None:
        has = ", ".join(map(shown, parts)) or "none"
        raise UnreadableFile(
            f"the spreadsheet has no sheet {wanted!r}; its sheets: {has}" if wanted else "the spreadsheet has no sheet",
            where=name,
            hint="name one of them as `sheet` in the mapping",
        )
    return part
