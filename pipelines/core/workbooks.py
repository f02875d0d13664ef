"""Spreadsheets (.xlsx) as files from outside: values as they were last stored. No formula is ever computed.

The file is a zip of XML files (ECMA-376). Of it are read the names of the sheets, the shared texts, which number
formats are dates, and one sheet, row by row.
"""

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from itertools import count
from typing import Any, NamedTuple

from lxml import etree

# What reading raises for a file that is no spreadsheet, or a damaged or hostile one: KeyError where a part is missing,
# ValueError for a number that is none and for a document type, NotImplementedError for a way of packing.
DAMAGED = (zipfile.BadZipFile, zlib.error, etree.XMLSyntaxError, KeyError, ValueError, NotImplementedError)

_LOCKED = b"\xd0\xcf\x11\xe0"  # an .xls, or an .xlsx with a password: both are another kind of file
_WORKBOOK = "xl/workbook.xml"
_REFERENCE = re.compile(r"([A-Z]{1,3})[0-9]+")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")  # how a text holds what XML cannot
_UNWRITABLE = re.compile(r"[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
# Number formats that every file has without stating them.
_DATES = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_TIMES = frozenset((*range(18, 23), *range(45, 48)))
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]')  # in a number format: what is shown as it stands, and colours
_FIRST_DATE = 61  # before it, the calendar of 1900 has a day that never was


class FaultyCell:
    """The value of a cell that holds an error, a formula that nobody has computed, or a date that cannot be."""


class Cell(NamedTuple):
    """The value of a cell (a text, a number, a truth value, a date, a FaultyCell; None where a formula gave nothing),
    and whether a formula gave it.
    """

    value: Any
    is_formula: bool


class Workbook:
    """A spreadsheet that is read in place. All that it does may raise one of DAMAGED."""

    def __init__(self, data: bytes) -> None:
        self._book = zipfile.ZipFile(io.BytesIO(data))
        if any(entry.flag_bits & 1 for entry in self._book.infolist()):
            raise zipfile.BadZipFile("encrypted")

    @property
    def unpacked_bytes(self) -> int:
        """What all its parts hold, by their own word; no more is ever unpacked of one."""
        return sum(entry.file_size for entry in self._book.infolist())

    def sheets(self) -> dict[str, str]:
        """The names of its sheets, in order, and the part in which each stands."""
        links = {
            element.get("Id"): posixpath.normpath(posixpath.join("/xl", element.get("Target", "")))[1:]
            for element in _elements(self._book, "xl/_rels/workbook.xml.rels", "Relationship")
            if element.get("Type", "").endswith("/worksheet")
        }
        parts = {
            element.get("name", ""): next((value for key, value in element.items() if key.endswith("}id")), "")
            for element in _elements(self._book, _WORKBOOK, "sheet")
        }
        return {title: links[link] for title, link in parts.items() if link in links}

    def rows(self, part: str) -> Iterator[tuple[int, dict[int, Cell]]]:
        """The rows of a sheet that are not empty: their numbers, and their cells by the number of the column."""
        yield from _cells(self._book, part, _texts(self._book), _formats(self._book), _first_day(self._book))


def hint_for(data: bytes) -> str:
    """What to do about a file that could not be read."""
    return "save it as .xlsx, without a password" if data.startswith(_LOCKED) else "open it, and save it as .xlsx again"


def escaped(text: str) -> str:
    """A text as a cell holds it: what XML cannot hold as `_x0000_`, and what only looks so escaped, too."""
    return _UNWRITABLE.sub(lambda match: f"_x{ord(match[0]):04X}_", text)


def _first_day(book: zipfile.ZipFile) -> date:
    """The day from which the file counts."""
    since = date(1899, 12, 30)
    for element in _elements(book, _WORKBOOK, "workbookPr"):
        since = date(1904, 1, 1) if element.get("date1904") in ("1", "true") else since
    return since


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
) -> Iterator[tuple[int, dict[int, Cell]]]:
    following = count(1)
    for row in _elements(book, part, "row"):
        number = next(following)
        if row.get("r"):
            number = int(row.get("r"))
            following = count(number + 1)
        cells: dict[int, Cell] = {}
        at = 0
        for cell in row.iterchildren("{*}c"):
            reference = _REFERENCE.fullmatch(cell.get("r", ""))
            at = _column(reference[1]) if reference else at + 1
            try:
                value = _value(cell, texts, formats, since)
            except (ValueError, IndexError, OverflowError):
                value = FaultyCell()
            is_formula = cell.find("{*}f") is not None
            if is_formula or value not in (None, ""):
                cells[at] = Cell(value, is_formula)
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
