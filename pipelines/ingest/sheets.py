"""The rows of a spreadsheet (.xlsx), by column: values as they were last stored. No formula is ever computed.

The file is a zip of XML files (ECMA-376). Of it are read the names of the sheets, the shared texts, which number
formats are dates, and one sheet, row by row.
"""

import io
import posixpath
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from itertools import count
from typing import Any, NamedTuple

from lxml import etree

from pipelines.errors import UnreadableFile
from pipelines.ingest.files import require_size
from pipelines.ingest.forms import shown
from pipelines.ingest.records import MAX_RECORD_CHARS, Broken, Source

_LOCKED = b"\xd0\xcf\x11\xe0"  # an .xls, or an .xlsx with a password: both are another kind of file
_WORKBOOK = "xl/workbook.xml"
_REFERENCE = re.compile(r"([A-Z]{1,3})[0-9]+")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")  # how a text holds what XML cannot
# Number formats that every file has without stating them.
_DATES = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_TIMES = frozenset((*range(18, 23), *range(45, 48)))
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]')  # in a number format: what is shown as it stands, and colours
_FIRST_DATE = 61  # before it, the calendar of 1900 has a day that never was


class FaultyCell:
    """The value of a cell that holds an error, a formula that nobody has computed, or a date that cannot be."""


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
    except (zipfile.BadZipFile, zlib.error, etree.XMLSyntaxError, KeyError, ValueError, NotImplementedError) as error:
        locked = source.data.startswith(_LOCKED)
        raise UnreadableFile(
            "the file is no spreadsheet of the form .xlsx, or is damaged",
            where=source.name,
            hint="save it as .xlsx, without a password" if locked else "open it, and save it as .xlsx again",
        ) from error


def _rows(source: Source, sheet: str | None) -> Iterator[SheetRow | Broken]:
    with zipfile.ZipFile(io.BytesIO(source.data)) as book:
        if any(entry.flag_bits & 1 for entry in book.infolist()):
            raise zipfile.BadZipFile("encrypted")
        # No more than it states is unpacked of a part.
        require_size(source.name, sum(entry.file_size for entry in book.infolist()))
        part, since = _sheet(book, source.name, sheet)
        texts, formats = _texts(book), _formats(book)
        header: dict[int, str] = {}
        for number, cells in _cells(book, part, texts, formats, since):
            where = f"{source.name}:{number}"
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


def _sheet(book: zipfile.ZipFile, name: str, wanted: str | None) -> tuple[str, date]:
    """The part of the sheet `wanted`, of the first one without a name; and the day from which the file counts."""
    since, sheets = date(1899, 12, 30), {}
    for element in _elements(book, _WORKBOOK, "sheet", "workbookPr"):
        if etree.QName(element).localname == "workbookPr":
            since = date(1904, 1, 1) if element.get("date1904") in ("1", "true") else since
        else:
            sheets[element.get("name", "")] = next((value for key, value in element.items() if key.endswith("}id")), "")
    links = {
        element.get("Id"): posixpath.normpath(posixpath.join("/xl", element.get("Target", "")))[1:]
        for element in _elements(book, "xl/_rels/workbook.xml.rels", "Relationship")
        if element.get("Type", "").endswith("/worksheet")
    }
    parts = {title: links[link] for title, link in sheets.items() if link in links}
    part = next(iter(parts.values()), None) if wanted is None else parts.get(wanted)
    if part is None:
        has = ", ".join(map(shown, parts)) or "none"
        raise UnreadableFile(
            f"the spreadsheet has no sheet {wanted!r}; its sheets: {has}" if wanted else "the spreadsheet has no sheet",
            where=name,
            hint="name one of them as `sheet` in the mapping",
        )
    return part, since


def _texts(book: zipfile.ZipFile) -> list[str]:
    part = "xl/sharedStrings.xml"
    return [_text(element) for element in _elements(book, part, "si")] if part in book.namelist() else []


def _formats(book: zipfile.ZipFile) -> list[tuple[bool, bool]]:
    """For each style of a cell, whether its number is a date, and whether it shows a time of day."""
    part = "xl/styles.xml"
    if part not in book.namelist():
        return []
    codes: dict[int, str] = {}
    formats = []
    for element in _elements(book, part, "numFmt", "cellXfs"):
        if etree.QName(element).localname == "numFmt":
            codes[int(element.get("numFmtId", "0"))] = _LITERAL.sub("", element.get("formatCode", "")).lower()
            continue
        for style in element:
            number = int(style.get("numFmtId", "0"))
            code = codes.get(number)
            is_date = number in _DATES if code is None else re.search("[ymdhs]", code) is not None
            has_time = number in _TIMES if code is None else re.search("[hs]", code) is not None
            formats.append((is_date, has_time))
    return formats


def _cells(
    book: zipfile.ZipFile, part: str, texts: list[str], formats: list[tuple[bool, bool]], since: date
) -> Iterator[tuple[int, dict[int, Any]]]:
    """The rows of a sheet that are not empty: their numbers, and their values by the number of the column."""
    following = count(1)
    for row in _elements(book, part, "row"):
        number = next(following)
        if row.get("r"):
            number = int(row.get("r"))
            following = count(number + 1)
        cells: dict[int, Any] = {}
        at = 0
        for cell in row.iterchildren("{*}c"):
            reference = _REFERENCE.fullmatch(cell.get("r", ""))
            at = _column(reference[1]) if reference else at + 1
            try:
                value = _value(cell, texts, formats, since)
            except (ValueError, IndexError, OverflowError):
                value = FaultyCell()
            if value not in (None, ""):
                cells[at] = value
        if cells:
            yield number, cells


def _value(cell: Any, texts: list[str], formats: list[tuple[bool, bool]], since: date) -> Any:
    """The value of a cell, None for an empty one; ValueError and its like for one that holds none."""
    kind, written = cell.get("t", "n"), cell.findtext("{*}v")
    if kind == "s" and (written or "").startswith("-"):
        raise IndexError("no text has such a number")
    if kind == "inlineStr":
        return _text(cell)
    if kind == "e" or (written is None and cell.find("{*}f") is not None):
        raise ValueError("an error, or a formula that nobody has computed")
    if written is None or kind in ("str", "d"):  # the text of a formula, or a date in ISO's form
        return None if written is None else _unescaped(written)
    if kind == "b":
        return written == "1"
    if kind == "s":
        return texts[int(written)]
    number, style = float(written), int(cell.get("s", "0"))
    is_date, has_time = formats[style] if style < len(formats) else (False, False)
    if is_date:
        return _moment(number, since, has_time)
    return int(number) if number == int(number) else number  # int() refuses what is not finite


def _moment(days: float, since: date, has_time: bool) -> datetime | date:
    if days < _FIRST_DATE:
        raise ValueError("a time of day without its date, or one before March 1900")
    at = datetime(since.year, since.month, since.day) + timedelta(seconds=round(days * 86_400))
    return at if has_time or at.time() != time.min else at.date()


def _text(element: Any) -> str:
    """The text of a cell, of all its runs; what is written above characters to pronounce them is left out."""
    runs = (run for run in element.iter("{*}t") if next(run.iterancestors("{*}rPh"), None) is None)
    return _unescaped("".join(run.text or "" for run in runs))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number


def _elements(book: zipfile.ZipFile, part: str, *names: str) -> Iterator[Any]:
    """The elements of these names, one at a time. No entity is resolved, and a document that defines any is refused."""
    with book.open(part) as stream:
        tags = tuple(f"{{*}}{name}" for name in names)
        for _, element in etree.iterparse(stream, tag=tags, resolve_entities=False, no_network=True, load_dtd=False):
            if element.getroottree().docinfo.doctype:
                raise ValueError("a document type")
            yield element
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
