"""Tasks of one person as a spreadsheet, and what comes back of it: nothing in it is trusted.

The first sheet says what to do in a crisis, and how to decide. The second has one block of rows a task; hidden columns
say of each row which task it is of, the hash of what is shown, and which text or question stands in it.
"""

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import ValidationError

from pipelines.core.files import write_whole
from pipelines.core.workbooks import DAMAGED, Cell, Workbook, hint_for
from pipelines.errors import UnreadableFile
from pipelines.review import sheet_looks as looks
from pipelines.review.contract import Label, Task
from pipelines.review.questions import COMMENT, EDIT, Question, Screen, answers_of, batch_of, headings_of, screen_of
from pipelines.review.refusals import Refusal, RefusedError

_MAX_UNPACKED = 256 << 20  # bytes
_NO_CELL = Cell(None, is_formula=False)


class Answered(NamedTuple):
    """A label, and the first row of its task."""

    row: int
    label: Label


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
        self.faults: list[RefusedError] = []


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


def read_sheet(
    path: Path, tasks: Iterable[Task], gone: Mapping[str, bool] = MappingProxyType({})
) -> tuple[list[Answered], list[Refusal]]:
    """The labels of a sheet that was filled in, and what is refused of it: at most once a task, with the row. A task
    of which nothing is answered is in neither: it waits.

    Args:
        path: The sheet.
        tasks: Those that went out and can be shown today; others may be among them.
        gone: Those that cannot, and whether each has a label already: then the sheet adds nothing to it.

    Raises UnreadableFile for what is no spreadsheet.
    """
    known = {task.task_id: task for task in tasks}
    labels: list[Answered] = []
    blocks, refusals = _read_blocks(path)
    for task_id, block in blocks.items():
        try:
            task = known.get(task_id)
            if task is None:
                _require_nothing(block, gone.get(task_id))
            elif label := _read_label(block, task):
                labels.append(Answered(block.row, label))
        except RefusedError as refused:
            named = task_id if task_id in known or task_id in gone else None
            refusals.append(Refusal(str(path), refused.line or block.row, named, refused.reason, refused.detail))
    return labels, sorted(refusals, key=lambda one: one.line)


def _require_nothing(block: _Block, answered: bool | None) -> None:
    """Raises RefusedError for answers to a task that cannot be shown; `answered`: whether it has a label, None for one
    that never went out.
    """
    if answered is None:
        raise RefusedError("unknown_task")
    if not answered and not all(_is_blank(place.cell) for place in block.given.values()):
        raise RefusedError("item_changed")


def _read_blocks(path: Path) -> tuple[dict[str, _Block], list[Refusal]]:
    """The rows of each task, and what is refused of rows that belong to none."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableFile(f"the sheet cannot be read: {error}", where=path, hint="name a file that is") from error
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
            return {}, [Refusal(str(path), number, None, "layout", detail)]
        for number, cells in rows:
            task_id = cells.get(looks.TASK_ID, _NO_CELL).value
            if isinstance(task_id, str):
                _add_row(blocks.setdefault(task_id, _Block(number)), number, cells)
            elif any(cell.is_formula for cell in cells.values()):
                refusals.append(Refusal(str(path), number, None, "formula", "where nothing is to be written"))
    except DAMAGED as error:
        raise UnreadableFile("the file is no spreadsheet, or is damaged", where=path, hint=hint_for(data)) from error
    return blocks, refusals


def _add_row(block: _Block, row: int, cells: Mapping[int, Cell]) -> None:
    if any(cell.is_formula for cell in cells.values()):
        block.faults.append(RefusedError("formula", "write the text itself", row))
    block.shown.append(_Place(row, cells.get(looks.SHOWN, _NO_CELL)))
    pairs = ((looks.READS, looks.TEXT, block.texts), (looks.ASKS, looks.ANSWER, block.given))
    for named, holds, places in pairs:
        field = cells.get(named, _NO_CELL).value
        if field is not None:
            if field in places:
                block.faults.append(RefusedError("layout", "a row stands there twice", row))
            places[field] = _Place(row, cells.get(holds, _NO_CELL))


def _read_label(block: _Block, task: Task) -> Label | None:
    """The label of a block; None where nothing is answered. Raises RefusedError."""
    for fault in block.faults[:1]:
        raise fault
    for row, cell in block.shown:
        if cell.value != task.shown:
            raise RefusedError("another_text", line=row)
    screen = screen_of(task)
    _require_texts(block, screen)
    originals = {f"{EDIT}{passage.field}": passage.text for passage in screen.passages}
    written = {text.field: _written(block.given[text.field], originals.get(text.field, "")) for text in screen.texts}
    given = {question.field: block.given[question.field] for question in screen.questions}
    missing = [place.row for place in given.values() if _is_blank(place.cell)]
    if len(missing) == len(given) and not any(written.values()):
        return None
    if missing:
        raise RefusedError("missing_answer", f"{len(missing)} of {len(given)} questions have no answer", missing[0])
    chosen = {question.field: _chosen(given[question.field], question) for question in screen.questions}
    _require_sense(task, screen, block, chosen, written)
    answers = answers_of(task.kind, chosen, written)
    try:
        return Label(kind=task.kind, task_id=task.task_id, annotator=task.annotator, shown=task.shown, answers=answers)
    except ValidationError as error:  # a cell may hold what no text has
        raise RefusedError("no_text", "a character that is none") from error


def _require_texts(block: _Block, screen: Screen) -> None:
    asked = {question.field for question in screen.questions} | {text.field for text in screen.texts}
    if block.texts.keys() != {passage.field for passage in screen.passages} or block.given.keys() != asked:
        raise RefusedError("layout", "rows of the task are missing, or are not its own")
    for passage in screen.passages:
        row, cell = block.texts[passage.field]
        if not isinstance(cell.value, str) or _lines(cell.value) != _lines(passage.text):
            raise RefusedError("edited_source", line=row)


def _require_sense(
    task: Task, screen: Screen, block: _Block, chosen: Mapping[str, Any], written: Mapping[str, str]
) -> None:
    """Raises RefusedError where answers that are allowed one by one do not go together."""
    if task.kind == "coe":
        edits = [field for field, text in written.items() if field != COMMENT and text]
        verdict = block.given["verdict"].row
        if chosen["verdict"] == "mend" and not edits:
            raise RefusedError("missing_answer", "to be mended, and no level has a new text", verdict)
        if chosen["verdict"] != "mend" and edits:
            row = block.given[edits[0]].row
            raise RefusedError("contradiction", "a new text, and nothing is to be mended", row)
    if task.kind == "rank":
        taken: set[int] = set()
        for question in screen.questions:
            if chosen[question.field] in taken:
                raise RefusedError("contradiction", "a place that is given twice", block.given[question.field].row)
            taken.add(chosen[question.field])


def _chosen(place: _Place, question: Question) -> Any:
    name = str(place.cell.value).strip()
    for choice in question.choices:
        if choice.label == name:
            return choice.value
    listed = ", ".join(choice.label for choice in question.choices)
    raise RefusedError("undefined_choice", f"as the cell's list has them: {listed}", place.row)


def _written(place: _Place, original: str) -> str:
    """What was written into a cell; nothing where it is what stood beside it."""
    value = "" if _is_blank(place.cell) else place.cell.value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RefusedError("no_text", "a date, a truth value or an error; write it as a text", place.row)
    return "" if _lines(str(value)) == _lines(original) else str(value)


def _is_blank(cell: Cell) -> bool:
    return cell.value is None or (isinstance(cell.value, str) and not cell.value.strip())


def _lines(text: str) -> str:
    """A text whose lines end in one way: programs that save a sheet write them in theirs, and nobody sees it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
