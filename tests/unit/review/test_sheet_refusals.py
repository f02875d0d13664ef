"""A sheet that comes back otherwise than it went out: each fault is refused once, with its row, and the rest counts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import review_tasks
from filled_sheet import OpenSheet, opened

from pipelines.review.contract import Kind, Task
from pipelines.review.refusals import Refusal
from pipelines.review.sheets import read_sheet, write_sheet

GIVEN: dict[Kind, dict[str, Any]] = {
    "coe": {"verdict": "mend", "edits": {"L2": "换一种说法"}, "comment": "好"},
    "cer": {"step1": True, "step2": False, "step3": True, "preference": "both", "comment": ""},
    "rank": {"places": [2, 1, 3], "comment": ""},
    "compare": {"preference": "neither", "comment": ""},
}
Change = Callable[[OpenSheet, str], Any]


def returned(path: Path, kind: Kind, change: Change, known: list[Task] | None = None) -> tuple[OpenSheet, list[Any]]:
    """Three tasks, all answered; the second is changed. The sheet, and what is refused: the others count."""
    tasks = review_tasks.batch(kind, 3)
    write_sheet(tasks, path)
    with opened(path) as sheet:
        for task in tasks:
            sheet.give(task.task_id, GIVEN[kind])
        change(sheet, tasks[1].task_id)
    labels, refusals = read_sheet(path, tasks if known is None else known)
    assert [one.label.task_id for one in labels] == [tasks[0].task_id, tasks[2].task_id]
    return sheet, refusals


def put(cell: Any, value: Any) -> None:
    cell.value = value


def put_all(sheet: OpenSheet, task_id: str, column: int, value: str) -> None:
    for (each, _), row in sheet.rows.items():
        if each == task_id:
            put(sheet.sheet.cell(row, column), value)


def copy_row(sheet: OpenSheet, row: int) -> None:
    below = sheet.sheet.max_row + 1
    for column in range(1, 9):
        put(sheet.sheet.cell(below, column), sheet.sheet.cell(row, column).value)


def blank(sheet: OpenSheet, row: int) -> None:
    for column in range(1, 9):
        cell = sheet.sheet.cell(row, column)
        if not isinstance(cell, openpyxl.cell.MergedCell):
            put(cell, None)


FAULTS: dict[str, tuple[Kind, str, str, Change]] = {
    "an edited source": ("cer", "edited_source", "read step2", lambda s, t: put(s.text(t, "step2"), "情感：积极")),
    "a source that is emptied": ("coe", "edited_source", "read L1", lambda s, t: put(s.text(t, "L1"), None)),
    "a source as another's text": (
        "rank", "edited_source", "read answer2", lambda s, t: put(s.text(t, "answer2"), s.text(t, "answer1").value)
    ),
    "a source that is a number now": ("coe", "edited_source", "read L3", lambda s, t: put(s.text(t, "L3"), 7)),
    "a step without an answer": ("cer", "missing_answer", "step3", lambda s, t: put(s.answer(t, "step3"), None)),
    "a place without an answer": ("rank", "missing_answer", "place1", lambda s, t: put(s.answer(t, "place1"), " ")),
    "a comment alone": ("compare", "missing_answer", "preference", lambda s, t: (
        put(s.answer(t, "preference"), None), s.write(t, "comment", "想一想"))),
    "mended, and nothing new": ("coe", "missing_answer", "verdict", lambda s, t: put(s.answer(t, "edit.L2"), None)),
    "mended, and the same text": (
        "coe", "missing_answer", "verdict", lambda s, t: put(s.answer(t, "edit.L2"), s.text(t, "L2").value)
    ),
    "a choice that is none": ("cer", "undefined_choice", "step1", lambda s, t: put(s.answer(t, "step1"), "不知道")),
    "a choice of another question": (
        "cer", "undefined_choice", "step1", lambda s, t: put(s.answer(t, "step1"), "两个都好")
    ),
    "a truth value": ("cer", "undefined_choice", "step1", lambda s, t: put(s.answer(t, "step1"), True)),
    "a place that is none": ("rank", "undefined_choice", "place3", lambda s, t: put(s.answer(t, "place3"), "第4名")),
    "a place twice": ("rank", "contradiction", "place2", lambda s, t: put(s.answer(t, "place2"), "第2名")),
    "accepted, with a new text": (
        "coe", "contradiction", "edit.L2", lambda s, t: put(s.answer(t, "verdict"), "接受")
    ),
    "a formula as an answer": ("cer", "formula", "step1", lambda s, t: put(s.answer(t, "step1"), '="对"')),
    "a formula as a comment": (
        "coe", "formula", "comment", lambda s, t: put(s.answer(t, "comment"), '=HYPERLINK("http://192.0.2.1")')
    ),
    "a formula as a source": ("cer", "formula", "read turn1", lambda s, t: put(s.text(t, "turn1"), '="x"')),
    "a formula beside": (
        "cer", "formula", "step2", lambda s, t: put(s.sheet.cell(s.rows[t, "step2"], 11), "=1+1")
    ),
    "an error as a comment": ("coe", "no_text", "comment", lambda s, t: put(s.answer(t, "comment"), "#N/A")),
    "another version": ("cer", "another_text", "read turn1", lambda s, t: put_all(s, t, 6, "0" * 16)),
    "another version in one row": (
        "cer", "another_text", "step1", lambda s, t: put(s.sheet.cell(s.rows[t, "step1"], 6), "0" * 16)
    ),
    "a task that never went out": ("cer", "unknown_task", "read turn1", lambda s, t: put_all(s, t, 5, "cer-9.p07")),
    "a row twice": ("cer", "layout", "twice", lambda s, t: copy_row(s, s.rows[t, "step1"])),
    "a row that is gone": ("cer", "layout", "read turn1", lambda s, t: blank(s, s.rows[t, "step1"])),
    "a row of another kind": (
        "cer", "layout", "read turn1", lambda s, t: put(s.sheet.cell(s.rows[t, "step1"], 8), "verdict")
    ),
}  # fmt: skip


@pytest.mark.drill("data")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_refused_once_with_its_row(tmp_path: Path, fault: str) -> None:
    kind, reason, where, change = FAULTS[fault]
    sheet, refusals = returned(tmp_path / "sheet.xlsx", kind, change)
    [refusal] = refusals
    row = sheet.sheet.max_row if where == "twice" else sheet.rows[f"{kind}-1.p07", where]
    task_id = None if reason == "unknown_task" else f"{kind}-1.p07"
    assert (refusal.line, refusal.task_id, refusal.reason) == (row, task_id, reason)
    assert str(refusal).startswith(f"{tmp_path / 'sheet.xlsx'}, row {row}")
    assert reason != "undefined_choice" or {"rank": "第1名", "cer": "对"}.get(kind, "") in refusal.detail


def test_a_formula_where_nothing_is_to_be_written_is_refused(tmp_path: Path) -> None:
    tasks = review_tasks.batch("compare", 1)
    write_sheet(tasks, tmp_path / "sheet.xlsx")
    with opened(tmp_path / "sheet.xlsx") as sheet:
        sheet.give(tasks[0].task_id, GIVEN["compare"])
        put(sheet.sheet.cell(500, 2), "=1+1")
    labels, refusals = read_sheet(tmp_path / "sheet.xlsx", tasks)
    assert len(labels) == 1
    assert [(refusal.line, refusal.task_id, refusal.reason) for refusal in refusals] == [(500, None, "formula")]


@pytest.mark.parametrize("change", ["a column before", "another name", "no such sheet"])
def test_a_layout_that_is_not_ours_is_refused_as_a_whole(tmp_path: Path, change: str) -> None:
    tasks = review_tasks.batch("compare", 2)
    write_sheet(tasks, tmp_path / "sheet.xlsx")
    book = openpyxl.load_workbook(tmp_path / "sheet.xlsx")
    match change:
        case "a column before":
            book["题目"].insert_cols(1)
        case "another name":
            book["题目"]["H1"] = "questions"
        case _:
            book["题目"].title = "Sheet1"
    book.save(tmp_path / "sheet.xlsx")
    labels, refusals = read_sheet(tmp_path / "sheet.xlsx", tasks)
    assert labels == []
    assert refusals == [Refusal(str(tmp_path / "sheet.xlsx"), 1, None, "layout", refusals[0].detail)]


def test_an_answer_may_have_space_around_and_a_comment_may_be_a_number(tmp_path: Path) -> None:
    tasks = review_tasks.batch("compare", 1)
    write_sheet(tasks, tmp_path / "sheet.xlsx")
    with opened(tmp_path / "sheet.xlsx") as sheet:
        put(sheet.answer(tasks[0].task_id, "preference"), " 两个都好\n")
        put(sheet.answer(tasks[0].task_id, "comment"), 3)
    [one], refusals = read_sheet(tmp_path / "sheet.xlsx", tasks)
    assert (one.label.answers, refusals) == ({"preference": "both", "comment": "3"}, [])


def test_lines_may_end_in_the_way_of_another_program(tmp_path: Path) -> None:
    task = review_tasks.compare("lines", question="一\r\n二\r三\n四")
    write_sheet([task], tmp_path / "sheet.xlsx")
    with opened(tmp_path / "sheet.xlsx") as sheet:
        put(sheet.text(task.task_id, "question"), "一\n二\n三\n四")
        sheet.give(task.task_id, GIVEN["compare"])
    labels, refusals = read_sheet(tmp_path / "sheet.xlsx", [task])
    assert (len(labels), refusals) == (1, [])


def test_a_task_that_cannot_be_shown_any_more_is_passed_over_where_it_has_a_label_or_no_answer(tmp_path: Path) -> None:
    tasks = review_tasks.batch("cer", 3)
    write_sheet(tasks, tmp_path / "sheet.xlsx")
    with opened(tmp_path / "sheet.xlsx") as sheet:
        for task in tasks[:2]:
            sheet.give(task.task_id, GIVEN["cer"])
    gone = {tasks[0].task_id: True, tasks[1].task_id: False, tasks[2].task_id: False}
    labels, refusals = read_sheet(tmp_path / "sheet.xlsx", [], gone)
    assert labels == []
    assert [(one.task_id, one.reason) for one in refusals] == [(tasks[1].task_id, "item_changed")]
