"""A sheet goes out, is filled in, and comes back: the labels are the answers, whatever the texts hold."""

from pathlib import Path
from typing import Any, get_args

import openpyxl
import pytest
import review_tasks
from filled_sheet import opened
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pipelines.core.workbooks import Workbook
from pipelines.errors import RequestError, UnreadableFile
from pipelines.review.contract import Choice, Kind, Label, Task
from pipelines.review.sheet_looks import count_lines
from pipelines.review.sheets import read_sheet, write_sheet

KINDS: tuple[Kind, ...] = get_args(Kind)
TEXT = st.text(min_size=1, max_size=60) | st.sampled_from(review_tasks.HOSTILE)
WRITTEN = TEXT.filter(lambda text: bool(text.strip()))
COMMENT = st.just("") | WRITTEN.map(str.strip)
PREFERENCE = st.sampled_from(get_args(Choice))
CONTENT: dict[Kind, Any] = {
    "coe": st.fixed_dictionaries(dict.fromkeys(("question", "answer", "L1", "L2", "L3", "L4"), TEXT)),
    "cer": st.fixed_dictionaries({
        "history": st.lists(st.fixed_dictionaries({"role": st.sampled_from(("seeker", "supporter")), "text": TEXT}),
                            min_size=1, max_size=5),
        "steps": st.lists(TEXT, min_size=3, max_size=3), "replies": st.lists(TEXT, min_size=2, max_size=2)}),
    "rank": st.fixed_dictionaries({"question": TEXT, "answers": st.lists(TEXT, min_size=2, max_size=6)}),
    "compare": st.fixed_dictionaries({"question": TEXT, "answers": st.lists(TEXT, min_size=2, max_size=2)}),
}  # fmt: skip


def answers_to(draw: Any, task: Task) -> dict[str, Any]:
    """Answers that the contract allows."""
    comment = {"comment": draw(COMMENT)}
    match task.kind:
        case "coe":
            verdict = draw(st.sampled_from(("accept", "mend", "reject")))
            levels = st.sampled_from(("L1", "L2", "L3", "L4"))
            edits = draw(st.dictionaries(levels, WRITTEN, min_size=1)) if verdict == "mend" else {}
            assume(all(same_lines(text) != same_lines(task.content[level]) for level, text in edits.items()))
            return {"verdict": verdict, "edits": edits, **comment}
        case "cer":
            return {**{f"step{n}": draw(st.booleans()) for n in (1, 2, 3)}, "preference": draw(PREFERENCE), **comment}
        case "rank":
            return {"places": draw(st.permutations(range(1, len(task.content["answers"]) + 1))), **comment}
        case _:
            return {"preference": draw(PREFERENCE), **comment}


def same_lines(text: str) -> str:
    return "\n".join(text.replace("\r\n", "\n").split("\r"))


@given(st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_what_is_filled_in_comes_back_and_what_is_not_waits(tmp_path: Path, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    tasks = [review_tasks.task(kind, f"item{n}", data.draw(CONTENT[kind])) for n in range(data.draw(st.integers(1, 4)))]
    waiting = data.draw(st.sets(st.integers(0, 3)))
    answers = {task.task_id: answers_to(data.draw, task) for n, task in enumerate(tasks) if n not in waiting}
    path = tmp_path / "sheet.xlsx"
    write_sheet(tasks, path, tasks[1:2])
    with opened(path) as sheet:
        for task_id, given_ in answers.items():
            sheet.give(task_id, given_)
    labels, refusals = read_sheet(path, tasks)
    assert refusals == []
    assert {one.label.task_id: one.label.answers for one in labels} == answers
    for _, label in labels:
        [task] = [task for task in tasks if task.task_id == label.task_id]
        assert (label.kind, label.annotator, label.shown) == (task.kind, task.annotator, task.shown)
        assert Label.model_validate_json(label.model_dump_json()) == label


@pytest.mark.drill("data")
@pytest.mark.parametrize("kind", KINDS)
def test_no_text_becomes_a_formula_and_every_hostile_one_comes_back(tmp_path: Path, kind: Kind) -> None:
    tasks = review_tasks.hostile(kind)
    write_sheet(tasks, tmp_path / "sheet.xlsx")
    book = openpyxl.load_workbook(tmp_path / "sheet.xlsx")
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert len(cells) > len(tasks) * 5
    assert {cell.data_type for cell in cells} == {"s"}
    starts = ("=", "+", "-", "@", "\t", "_x000D_")
    assert all(cell.quotePrefix for cell in cells if str(cell.value).startswith(starts) and "x005F" not in cell.value)
    first = {"coe": {"verdict": "accept"}, "rank": {"places": [3, 1, 2]}, "compare": {"preference": "both"}}
    answers = {"step1": True, "step2": False, "step3": True, "preference": "neither"} if kind == "cer" else first[kind]
    with opened(tmp_path / "sheet.xlsx") as sheet:
        for task, comment in zip(tasks, review_tasks.HOSTILE, strict=True):
            sheet.give(task.task_id, {**answers, "comment": comment})
    labels, refusals = read_sheet(tmp_path / "sheet.xlsx", tasks)
    assert refusals == []
    assert [one.label.answers["comment"] for one in labels] == [text.strip() for text in review_tasks.HOSTILE]


def test_the_guide_comes_first_and_only_what_is_to_be_filled_in_is_free(tmp_path: Path) -> None:
    tasks = review_tasks.batch("cer", 2)
    write_sheet(tasks, tmp_path / "sheet.xlsx", tasks[1:])
    book = openpyxl.load_workbook(tmp_path / "sheet.xlsx")
    guide, sheet = book.worksheets
    assert (guide.title, sheet.title) == ("说明", "题目")
    said = [cell.value for cell in guide["A"]]
    assert said[1] == "需要帮助的时候"
    assert "12356　全国统一心理援助热线" in said
    assert [sheet.cell(row, 1).value for row in (2, 3)] == ["练习 1 / 1", "求助者"]
    assert guide.protection.sheet
    assert sheet.protection.sheet
    assert not sheet.protection.password
    free = [cell.coordinate for row in sheet.iter_rows() for cell in row if not cell.protection.locked]
    assert len(free) == 2 * 5  # three steps, the preference and a comment each
    listed = [str(area) for one in sheet.data_validations.dataValidation for area in one.sqref.ranges]
    assert len(listed) == 2 * 4
    assert set(listed) < set(free)
    assert [letter for letter in "ABCDEFGH" if sheet.column_dimensions[letter].hidden] == ["E", "F", "G", "H"]


def test_a_row_is_as_high_as_its_text_and_none_higher_than_a_row_can_be(tmp_path: Path) -> None:
    """Where a row ends at 409 points, a text of 4,000 characters stands in a cell over several."""
    task = review_tasks.coe("long", L1="长" * 4_000)
    write_sheet([task], tmp_path / "sheet.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "sheet.xlsx")["题目"]
    assert all(row.height <= 409 for row in sheet.row_dimensions.values() if row.height)
    [area] = [
        area for area in sheet.merged_cells.ranges if str(sheet.cell(area.min_row, area.min_col).value)[:2] == "长长"
    ]
    high = sum(sheet.row_dimensions[row].height for row in range(area.min_row, area.max_row + 1))
    assert high > 4_000 / (58 / 2) * 15  # points: the column is 58 wide, a character 2, a line at least 15 high
    assert not sheet.cell(area.max_row, 4).protection.locked


def test_what_no_cell_holds_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="32,767") as refused:
        write_sheet([review_tasks.coe("too-long", L2="长" * 32_768)], tmp_path / "sheet.xlsx")
    assert refused.value.where == "too-long"
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_spreadsheet_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sheet.xlsx"
    path.write_bytes(b"PK\x03\x04 half")
    with pytest.raises(UnreadableFile, match="no spreadsheet, or is damaged"):
        read_sheet(path, [])
    write_sheet(review_tasks.batch("coe", 1), path)
    monkeypatch.setattr(Workbook, "unpacked_bytes", 1 << 40)
    with pytest.raises(UnreadableFile, match="absurdly large"):
        read_sheet(path, [])


def test_lines_of_texts_counted_by_hand() -> None:
    assert count_lines("", 40) == 1
    assert count_lines("一" * 16, 40) == 1  # (40 - 2.25) / 2.25 = 16.8
    assert count_lines("一" * 17, 40) == 2
    assert count_lines("一\n二\r\n三\r四", 40) == 4
    assert count_lines("ab " * 10, 40) == 1  # 34.5 of 37.75
    assert count_lines("一" * 12 + "abcdefghijkl", 40) == 2  # the word moves down as a whole
    assert count_lines("a" * 100, 40) == 4  # a word longer than a line is broken: 115 / 37.75


@given(st.text(st.characters(codec="utf-8"), max_size=300), st.integers(20, 120))
def test_more_text_or_less_room_never_takes_fewer_lines(text: str, width: int) -> None:
    assert count_lines(text + "一", width) >= count_lines(text, width)
    least = sum(-(-len(line) // width) for line in text.split("\n"))  # were every character as narrow as a digit
    assert count_lines(text, width) >= max(least, 1)
