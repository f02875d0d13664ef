"""Spreadsheets (.xlsx) as a program saves them: shared texts, styles, dates as numbers. Parts may be worse."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from html import escape
from typing import Any

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
# Style 1 is a date with a time, 2 a date alone.
_STYLES = (
    f'<styleSheet xmlns="{_MAIN}"><numFmts>'
    '<numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd&quot; um &quot;hh:mm"/></numFmts>'
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="14"/></cellXfs></styleSheet>'
)


class Raw(str):
    """A cell as it stands in the file, without its reference: `<c t="e"><v>#N/A</v></c>`."""


def workbook(sheets: Mapping[str, Sequence[Sequence[Any]]], parts: Mapping[str, str | None] | None = None) -> bytes:
    """A file with these sheets, None in a row is an empty cell. `parts` replace some of its own; None removes one."""
    texts: list[str] = []
    names = list(sheets)
    links = "".join(
        f'<Relationship Id="rId{n}" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(names) + 1)
    )
    titles = "".join(f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(names, 1))
    content = {
        "[Content_Types].xml": "<Types/>",
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>{titles}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="x">{links}</Relationships>',
        "xl/styles.xml": _STYLES,
    }
    for n, name in enumerate(names, 1):
        rows = "".join(_row(number, row, texts) for number, row in enumerate(sheets[name], 1))
        content[f"xl/worksheets/sheet{n}.xml"] = f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'
    shared = "".join(f'<si><t xml:space="preserve">{escape(text)}</t></si>' for text in texts)
    content["xl/sharedStrings.xml"] = f'<sst xmlns="{_MAIN}">{shared}</sst>'
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in {**content, **(parts or {})}.items():
            if part is not None:
                archive.writestr(name, _HEAD + part)
    return file.getvalue()


def _row(number: int, row: Sequence[Any], texts: list[str]) -> str:
    cells = (_cell(f"{chr(65 + at)}{number}", value, texts) for at, value in enumerate(row) if value is not None)
    return f'<row r="{number}">{"".join(cells)}</row>'


def _cell(reference: str, value: Any, texts: list[str]) -> str:
    match value:
        case Raw():
            return value.replace("<c", f'<c r="{reference}"', 1)
        case bool():
            return f'<c r="{reference}" t="b"><v>{value:d}</v></c>'
        case datetime():
            return f'<c r="{reference}" s="1"><v>{_days(value)}</v></c>'
        case date():
            return f'<c r="{reference}" s="2"><v>{_days(datetime(value.year, value.month, value.day)):.0f}</v></c>'
        case int() | float():
            return f'<c r="{reference}"><v>{value}</v></c>'
        case _:
            texts.append(value)
            return f'<c r="{reference}" t="s"><v>{len(texts) - 1}</v></c>'


def _days(at: datetime) -> float:
    return (at - datetime(1899, 12, 30)).total_seconds() / 86_400
