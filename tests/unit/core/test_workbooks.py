"""Cells of spreadsheets from outside: texts come back as they were, and a formula is never taken for one."""

import io

import openpyxl
from hypothesis import given
from hypothesis import strategies as st
from spreadsheet import Raw, workbook

from pipelines.core.workbooks import Cell, Workbook, escaped

HARD = st.sampled_from(
    ["_x000D_", "_x005F_", "_", "x", "\r", "\n", "\t", "\x00", "\x1f", "\ufffe", "\ud800", " ", "共", "=1"]
)
TEXTS = st.lists(st.text(min_size=1) | st.lists(HARD, min_size=1).map("".join), min_size=1, max_size=20)


@given(TEXTS)
def test_a_text_comes_back_as_it_was(texts: list[str]) -> None:
    book = openpyxl.Workbook()
    for row, text in enumerate(texts, 1):
        cell = book.worksheets[0].cell(row, 1, escaped(text))
        cell.data_type = "s"
    file = io.BytesIO()
    book.save(file)
    read = Workbook(file.getvalue())
    [part] = read.sheets().values()
    assert [cells[1] for _, cells in read.rows(part)] == [Cell(text, is_formula=False) for text in texts]


def test_a_formula_is_one_whatever_it_gave() -> None:
    formulas = ("<c><f>1+1</f><v>2</v></c>", '<c t="str"><f>A1</f><v></v></c>', '<c><f t="shared" si="0"/><v>3</v></c>')
    book = Workbook(workbook({"一": [[*map(Raw, formulas), "=1+1", 2]]}))
    [(number, cells)] = book.rows(book.sheets()["一"])
    assert number == 1
    assert [cells[at].is_formula for at in sorted(cells)] == [True, True, True, False, False]
    assert cells[4].value == "=1+1"
