"""Tasks of one person as a spreadsheet, and what comes back of it: nothing in it is trusted.

The first sheet says what to do in a crisis, and how to decide. The second has one block of rows a task; hidden columns
say of each row which task it is of, the hash of what is shown, and which text or question stands in it.
"""

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pipelines.core.files import write_whole
from pipelines.core.workbooks import DAMAGED, Cell, Workbook, hint_for
from pipelines.errors import UnreadableFile
from pipelines.review import sheet_looks as looks
from pipelines.review.contract import Label, Task
from pipelines.review.questions import COMMENT, EDIT, Question, Screen, answers_of, batch_of, headings_of, screen_of

Reason = Literal[
    "layout", "unknown_task", "other_version", "formula", "edited_source", "undefined_choice", "no_text", "missing",
    "contradiction",
]  # fmt: skip

_MAX_UNPACKED = 256 << 20  # bytes
_NO_CELL = Cell(None, is_formula=False)


class Refusal(NamedTuple):
    """Why something of a sheet is refused, and in which row. `task_id` is empty where it belongs to no task; `detail`
    has no words of a person.
    """

    row: int
    task_id: str
    reason: Reason
    detail: str


class _Place(NamedTuple):
    """A cell, and its row."""

    row: int
    cell: Cell


class _Block:
    """The rows of a task as they came back."""

    def __init__(self, row: int) -> None:
        self.row = row  # the first of them
        self.shown: list[_Place] = []
        self.texts: dict[str, _Place] = {}
        self.given: dict[str, _Place] = {}
        self.faults: list[tuple[int, Reason, str]] = []


class _Refused(Exception):
    def __init__(self, row: int, reason: Reason, detail: str) -> None:
        super().__init__(row, reason, detail)
        self.row, self.reason, self.detail = row, reason, detail


def write_sheet(tasks: Iterable[Task], path: Path, calibration: Iterable[Task] = ()) -> None:
    """Write the tasks of one person as an .xlsx file, those of `calibration` first.

    Raises RequestError for tasks of more than one kind or person, for none, and for a text too long for a cell.
    """
    import openpyxl

    calibration = list(calibration)
    batch = batch_of(tasks, calibration)
    book = openpyxl.Workbook()
    guide = book.worksheets[0]
    guide.title = looks.GUIDE
    looks.write_guide(guide, batch[0].kind)
    looks.write_blocks(book.create_sheet(looks.TASKS), batch, headings_of(batch, calibration))
    looks.lock_structure(book)
    file = io.BytesIO()
    book.save(file)
    write_whole(path, file.getvalue())


def read_sheet(path: Path, tasks: Iterable[Task]) -> tuple[list[Label], list[Refusal]]:
    """The labels of a sheet that was filled in, and what is refused of it: at most once a task, with the row. A task
    of which nothing is answered is in neither: it waits.

    `tasks` are those that went out; others may be among them. Raises UnreadableFile for what is no spreadsheet.
    """
    known = {task.task_id: task for task in tasks}
    labels = []
    blocks, refusals = _read_blocks(path)
    for task_id, block in blocks.items():
        try:
            if label := _read_label(block, known.get(task_id)):
                labels.append(label)
        except _Refused as refused:
            refusals.append(Refusal(refused.row, task_id, refused.reason, refused.detail))
    return labels, sorted(refusals)


def _read_blocks(path: Path) -> tuple[dict[str, _Block], list[Refusal]]:
    """The rows of each task, and what is refused of rows that belong to none."""
    data = path.read_bytes()
    blocks: dict[str, _Block] = {}
    refusals: list[Refusal] = []
    try:
        book = Workbook(data)
        if book.unpacked_bytes > _MAX_UNPACKED:
            raise UnreadableFile("absurdly large: nothing that went out", where=path, hint="check what the file is")
        part = book.sheets().get(looks.TASKS)
        rows = book.rows(part) if part else iter([])
        number, header = next(rows, (1, {}))
        if tuple(header.get(at, _NO_CELL).value or "" for at in range(1, len(looks.HEADER) + 1)) != looks.HEADER:
            detail = f"not the columns of a sheet that went out; they stand in the first row of {looks.TASKS!r}"
            return {}, [Refusal(number, "", "layout", detail)]
        for number, cells in rows:
            task_id = cells.get(looks.TASK_ID, _NO_CELL).value
            if isinstance(task_id, str):
                _add_row(blocks.setdefault(task_id, _Block(number)), number, cells)
            elif any(cell.is_formula for cell in cells.values()):
                refusals.append(Refusal(number, "", "formula", "a formula stands where nothing is to be written"))
    except DAMAGED as error:
        raise UnreadableFile("the file is no spreadsheet, or is damaged", where=path, hint=hint_for(data)) from error
    return blocks, refusals


def _add_row(block: _Block, row: int, cells: Mapping[int, Cell]) -> None:
    if any(cell.is_formula for cell in cells.values()):
        block.faults.append((row, "formula", "a cell holds a formula; write the text itself"))
    block.shown.append(_Place(row, cells.get(looks.SHOWN, _NO_CELL)))
    pairs = ((looks.READS, looks.TEXT, block.texts), (looks.ASKS, looks.ANSWER, block.given))
    for named, holds, places in pairs:
        field = cells.get(named, _NO_CELL).value
        if field is not None:
            if field in places:
                block.faults.append((row, "layout", "a row stands there twice"))
            places[field] = _Place(row, cells.get(holds, _NO_CELL))


def _read_label(block: _Block, task: Task | None) -> Label | None:
    """The label of a block; None where nothing is answered. Raises _Refused."""
    if task is None:
        raise _Refused(block.row, "unknown_task", "no such task went out")
    for fault in block.faults[:1]:
        raise _Refused(*fault)
    for row, cell in block.shown:
        if cell.value != task.shown:
            raise _Refused(row, "other_version", "what was shown is another version of the text")
    screen = screen_of(task)
    _require_texts(block, screen)
    originals = {f"{EDIT}{passage.field}": passage.text for passage in screen.passages}
    written = {text.field: _written(block.given[text.field], originals.get(text.field, "")) for text in screen.texts}
    given = {question.field: block.given[question.field] for question in screen.questions}
    missing = [place.row for place in given.values() if _is_blank(place.cell)]
    if len(missing) == len(given) and not any(written.values()):
        return None
    if missing:
        raise _Refused(missing[0], "missing", f"{len(missing)} of {len(given)} questions have no answer")
    chosen = {question.field: _chosen(given[question.field], question) for question in screen.questions}
    _require_sense(task, screen, block, chosen, written)
    answers = answers_of(task.kind, chosen, written)
    return Label(kind=task.kind, task_id=task.task_id, annotator=task.annotator, shown=task.shown, answers=answers)


def _require_texts(block: _Block, screen: Screen) -> None:
    asked = {question.field for question in screen.questions} | {text.field for text in screen.texts}
    if block.texts.keys() != {passage.field for passage in screen.passages} or block.given.keys() != asked:
        raise _Refused(block.row, "layout", "rows of the task are missing, or are not its own")
    for passage in screen.passages:
        row, cell = block.texts[passage.field]
        if not isinstance(cell.value, str) or _lines(cell.value) != _lines(passage.text):
            raise _Refused(row, "edited_source", "a text that was to be read is not what went out")


def _require_sense(
    task: Task, screen: Screen, block: _Block, chosen: Mapping[str, Any], written: Mapping[str, str]
) -> None:
    """Raises _Refused where answers that are allowed one by one do not go together."""
    if task.kind == "coe":
        edits = [field for field, text in written.items() if field != COMMENT and text]
        if chosen["verdict"] == "mend" and not edits:
            raise _Refused(block.given["verdict"].row, "missing", "to be mended, and no level has a new text")
        if chosen["verdict"] != "mend" and edits:
            raise _Refused(block.given[edits[0]].row, "contradiction", "a new text of a level that is not to be mended")
    if task.kind == "rank":
        taken: set[int] = set()
        for question in screen.questions:
            if chosen[question.field] in taken:
                raise _Refused(block.given[question.field].row, "contradiction", "a place that is given twice")
            taken.add(chosen[question.field])


def _chosen(place: _Place, question: Question) -> Any:
    name = str(place.cell.value).strip()
    for choice in question.choices:
        if choice.label == name:
            return choice.value
    raise _Refused(place.row, "undefined_choice", "the answer is none of the list")


def _written(place: _Place, original: str) -> str:
    """What was written into a cell; nothing where it is what stood beside it."""
    value = "" if _is_blank(place.cell) else place.cell.value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _Refused(place.row, "no_text", "the cell holds a date, a truth value or an error; write it as a text")
    return "" if _lines(str(value)) == _lines(original) else str(value)


def _is_blank(cell: Cell) -> bool:
    return cell.value is None or (isinstance(cell.value, str) and not cell.value.strip())


def _lines(text: str) -> str:
    """A text whose lines end in one way: programs that save a sheet write them in theirs, and nobody sees it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
