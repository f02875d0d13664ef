"""How the sheets of a spreadsheet look: the guidelines, and one block of rows a task, locked but for what is filled in.

No text is a formula, whatever it begins with, and no row is lower than its text: lines are counted, as rows have to be
high enough before anybody opens the sheet.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pipelines.core.workbooks import escaped
from pipelines.errors import RequestError
from pipelines.review.contract import Kind, Task
from pipelines.review.questions import FreeText, Passage, Question, Screen, crisis, guideline_of, screen_of, sections_of

if TYPE_CHECKING:
    from openpyxl.cell.cell import Cell
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet.datavalidation import DataValidation
    from openpyxl.worksheet.worksheet import Worksheet

GUIDE, TASKS = "说明", "题目"  # the names of the sheets
HEADER = ("", "请读", "问题", "请填", "task_id", "shown", "reads", "asks")
TITLE, TEXT, ASK, ANSWER, TASK_ID, SHOWN, READS, ASKS = range(1, 9)  # the columns; from TASK_ID on they are hidden
MAX_CHARS = 32_767  # of a cell, in units of UTF-16: what spreadsheet programs hold

# Widths of columns in characters of a Latin font; heights in points.
_GUIDE_WIDTH = 92
_WIDTHS: dict[Kind, tuple[int, int, int, int]] = {
    "coe": (16, 58, 22, 58),
    "cer": (20, 84, 18, 26),
    "rank": (14, 92, 18, 20),
    "compare": (14, 92, 18, 20),
}
_LINE, _MARGIN = 17.0, 6.0
_ROW_LINES = 8  # a row ends at 409 points: a longer text stands in a cell over several rows
_FREE_LINES = 3  # of a text that may be written
_FONT, _INK = "Microsoft YaHei", "1F3864"
_OF_TITLE, _OF_CRISIS, _OF_ANSWER, _OF_CONTEXT = "D9E2F3", "FFF4E5", "FFFBE0", "F5F5F5"
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
# In widths of a Latin digit. Wide by intent: a font that is wider than ours must not cut a line off.
_HAN, _LATIN = 2.25, 1.15
# What is never broken at the end of a line: words of Latin letters and the like, with what follows them at once.
_UNIT = re.compile(r"[\u0021-\u2e7f]+|.", re.DOTALL)


class Row(NamedTuple):
    """A row of a block: what is to be read, and what is asked beside it."""

    passage: Passage | None
    asked: Question | FreeText | None


def rows_of(screen: Screen) -> Iterator[Row]:
    """The rows of a task: its texts, each with what is asked about it, then what is asked about the whole."""
    asked: dict[str | None, list[Question | FreeText]] = {}
    for question in screen.questions:
        asked.setdefault(question.about, []).append(question)
    for text in screen.texts:
        asked.setdefault(text.about, []).append(text)
    for passage in screen.passages:
        beside = asked.pop(passage.field, [])
        yield Row(passage, beside[0] if beside else None)
    for one in asked.pop(None):
        yield Row(None, one)


def write_guide(sheet: "Worksheet", kind: Kind) -> None:
    """Fill the sheet that says what to do in a crisis, and how to decide."""
    from openpyxl.styles import Alignment, Font, PatternFill

    help_ = crisis()
    numbers = (f"{number}　{name}" for number, name in help_.numbers)
    of_crisis = [help_.title, *help_.opening, *numbers, *help_.elsewhere, *help_.if_somebody]
    lines = [(guideline_of(kind).title, 16, None), (of_crisis[0], 13, _OF_CRISIS)]
    lines += [(line, 11, _OF_CRISIS) for line in of_crisis[1:]]
    for section in sections_of(kind, "sheet"):
        lines += [(section.title, 13, None), *((line, 11, None) for line in section.lines)]
    sheet.column_dimensions["A"].width = _GUIDE_WIDTH
    for row, (text, size, fill) in enumerate(lines, 1):
        cell = sheet.cell(row, 1, text)
        cell.font = Font(name=_FONT, size=size, bold=size > 11, color=_INK if size > 11 else None)
        cell.alignment = Alignment(wrap_text=True, vertical="center")
        if fill:
            cell.fill = PatternFill("solid", fgColor=fill)
        scale = size / 11
        sheet.row_dimensions[row].height = scale * (_LINE * count_lines(text, _GUIDE_WIDTH / scale) + _MARGIN)
    _finish(sheet, "portrait", pages=1)


def write_blocks(sheet: "Worksheet", batch: Sequence[Task], headings: Sequence[str]) -> None:
    """Fill the sheet of the tasks. Raises RequestError for a text that no cell holds."""
    from openpyxl.worksheet.pagebreak import Break

    widths = _WIDTHS[batch[0].kind]
    for letter, width in zip("ABCD", widths, strict=True):
        sheet.column_dimensions[letter].width = width
    for letter in "EFGH":
        sheet.column_dimensions[letter].hidden = True
    sheet.row_dimensions[1].height = _LINE + _MARGIN
    for column, name in enumerate(HEADER, 1):
        _fill(sheet.cell(1, column), name, bold=True, fill=_OF_TITLE)
    at, lists = 2, _DropDowns(sheet)
    for task, heading in zip(batch, headings, strict=True):
        sheet.row_dimensions[at].height = _LINE + _MARGIN
        sheet.merge_cells(start_row=at, end_row=at, start_column=TITLE, end_column=ANSWER)
        _fill(sheet.cell(at, TITLE), heading, bold=True, fill=_OF_TITLE)
        at += 1
        for row in rows_of(screen_of(task)):
            at += _write_row(sheet, at, task, row, widths, lists)
        sheet.row_breaks.append(Break(id=at - 1))
    sheet.freeze_panes = "A2"
    sheet.print_title_rows = "1:1"
    _finish(sheet, "landscape")


def lock_structure(book: "Workbook") -> None:
    """Keep the sheets where they are. There is no password: it guards against slips, and the reader trusts nothing."""
    from openpyxl.workbook.protection import WorkbookProtection

    book.security = WorkbookProtection(lockStructure=True)


class _DropDowns:
    """The lists of a sheet, one for each set of choices."""

    def __init__(self, sheet: "Worksheet") -> None:
        self._sheet = sheet
        self._lists: dict[str, DataValidation] = {}

    def add(self, cell: "Cell", question: Question) -> None:
        """Let only the choices of a question into a cell."""
        from openpyxl.worksheet.datavalidation import DataValidation

        choices = ",".join(choice.label for choice in question.choices)
        if choices not in self._lists:
            one = DataValidation(type="list", formula1=f'"{choices}"', allow_blank=True, showErrorMessage=True)
            one.errorTitle, one.error = "请从列表里选", f"这里只能选：{choices.replace(',', '、')}"
            self._lists[choices] = one
            self._sheet.add_data_validation(one)
        self._lists[choices].add(cell.coordinate)


def _write_row(sheet: "Worksheet", at: int, task: Task, row: Row, widths: Sequence[int], lists: _DropDowns) -> int:
    """Write a row of a block, which may take several of the sheet; how many."""
    from openpyxl.styles import Protection

    passage, asked = row
    title, text = (passage.title, passage.text) if passage else ("", _meanings(asked))
    last = TEXT if asked else ANSWER  # a text beside which nothing is asked is as wide as all
    lines = max(
        count_lines(title, widths[TITLE - 1]),
        count_lines(text, sum(widths[TEXT - 1 : last])),
        count_lines(asked.ask, widths[ASK - 1]) if asked else 1,
        _FREE_LINES if isinstance(asked, FreeText) else 1,
    )
    many = -(-lines // _ROW_LINES)
    for one in range(at, at + many):
        sheet.row_dimensions[one].height = (_LINE * lines + _MARGIN) / many
    _fill(sheet.cell(at, TITLE), title, bold=True)
    _fill(sheet.cell(at, TEXT), text, task.item_id, fill=None if asked else _OF_CONTEXT)
    if asked:
        _fill(sheet.cell(at, ASK), asked.ask)
        answer = sheet.cell(at, ANSWER)
        _fill(answer, None, fill=_OF_ANSWER, locked=False)
        if isinstance(asked, Question):
            lists.add(answer, asked)
    hidden = (task.task_id, task.shown, passage.field if passage else None, asked.field if asked else None)
    for column, value in enumerate(hidden, TASK_ID):
        _fill(sheet.cell(at, column), value, task.item_id)
    spans = [(TITLE, TITLE), (TEXT, last), *([(ASK, ASK), (ANSWER, ANSWER)] if asked else [])]
    for first, to in spans:
        if many > 1 or to > first:
            sheet.merge_cells(start_row=at, end_row=at + many - 1, start_column=first, end_column=to)
    for one in range(at + 1, at + many):  # a cell can be filled in where all that it covers is free
        sheet.cell(one, ANSWER).protection = Protection(locked=asked is None)
    return many


def _meanings(asked: Question | FreeText | None) -> str:
    """What the choices of a question mean, a line each."""
    choices = asked.choices if isinstance(asked, Question) else ()
    return "\n".join(f"{choice.label}：{choice.means}" for choice in choices)


def _fill(
    cell: "Cell",
    text: str | None,
    item_id: str = "",
    *,
    bold: bool = False,
    fill: str | None = None,
    locked: bool = True,
) -> None:
    """Put a text into a cell, as a text. Raises RequestError, which names the item, where it is too long."""
    from openpyxl.styles import Alignment, Border, Font, PatternFill, Protection, Side

    if text is not None:
        held = escaped(text)
        if len(held.encode("utf-16-le")) > 2 * MAX_CHARS:
            raise RequestError(
                f"a text has more than the {MAX_CHARS:,} characters that a cell of a spreadsheet holds",
                where=item_id,
                hint="let it be reviewed on a page, or on a server",
            )
        cell.value = held
        cell.data_type = "s"  # what begins with = would be a formula
        cell.quotePrefix = text.startswith(_FORMULA_STARTS)
    side = Side(style="thin", color="BFBFBF")
    cell.border = Border(left=side, right=side, top=side, bottom=side)
    cell.font = Font(name=_FONT, size=11, bold=bold)
    cell.alignment = Alignment(wrap_text=True, vertical="top")
    cell.number_format = "@"
    cell.protection = Protection(locked=locked)
    if fill:
        cell.fill = PatternFill("solid", fgColor=fill)


def _finish(sheet: "Worksheet", orientation: str, pages: int = 0) -> None:
    """Lock a sheet, whose rows and columns may still be made larger, and let it print on A4, on so many `pages`."""
    sheet.protection.sheet = True
    sheet.protection.formatRows = sheet.protection.formatColumns = False  # False: allowed
    sheet.page_setup.orientation = orientation
    sheet.page_setup.paperSize = 9
    sheet.page_setup.fitToWidth, sheet.page_setup.fitToHeight = 1, pages
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
    sheet.page_margins.left = sheet.page_margins.right = 0.4
    sheet.page_margins.top = sheet.page_margins.bottom = 0.4


def count_lines(text: str, width: float) -> int:
    """Lines of `text`, wrapped at `width` digits, at least one."""
    room = width - _HAN  # a comma or full stop takes the character before it along to the next line
    return sum(_lines_of(paragraph, room) for paragraph in re.split(r"\r\n|[\r\n]", text))


def _lines_of(paragraph: str, room: float) -> int:
    lines, used = 1, 0.0
    for unit in _UNIT.findall(paragraph):
        wide = sum(map(_width, unit))
        if used + wide > room and used:
            lines, used = lines + 1, 0.0
        lines += int(wide // room)
        used += wide % room
    return lines


def _width(character: str) -> float:
    return _HAN if unicodedata.east_asian_width(character) in "WFA" else _LATIN
