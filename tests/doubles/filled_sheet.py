"""A sheet that a person fills in with a spreadsheet program: finds the cells by what stands beside them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openpyxl

from pipelines.core.workbooks import escaped

# The contract's values as the lists of the sheet call them.
NAMES: dict[Any, str] = {
    "accept": "接受", "mend": "修改", "reject": "拒绝", True: "对", False: "错",
    "first": "第一个更好", "second": "第二个更好", "both": "两个都好", "neither": "两个都不行",
}  # fmt: skip


class OpenSheet:
    """The sheet of the tasks, and where everything of each stands."""

    def __init__(self, book: Any) -> None:
        self.book = book
        self.sheet = book["题目"]
        self.rows: dict[tuple[str, str], int] = {}
        for row in range(2, self.sheet.max_row + 1):
            task_id, _, reads, asks = (self.sheet.cell(row, at).value for at in (5, 6, 7, 8))
            if task_id:
                self.rows |= {(task_id, field): row for field in (reads and f"read {reads}", asks) if field}

    def text(self, task_id: str, field: str) -> Any:
        """The cell of a text that is to be read."""
        return self.sheet.cell(self.rows[task_id, f"read {field}"], 2)

    def answer(self, task_id: str, field: str) -> Any:
        """The cell of an answer."""
        return self.sheet.cell(self.rows[task_id, field], 4)

    def write(self, task_id: str, field: str, text: str) -> None:
        """Type a text into a cell for texts, where nothing is a formula."""
        cell = self.answer(task_id, field)
        assert cell.number_format == "@"
        assert not cell.protection.locked
        cell.value = escaped(text)
        cell.data_type = "s"

    def give(self, task_id: str, answers: Mapping[str, Any]) -> None:
        """Answer a task: what the contract holds, from the lists and by typing."""
        for field, value in answers.items():
            if field == "edits":
                for level, text in value.items():
                    self.write(task_id, f"edit.{level}", text)
            elif field == "places":
                for n, place in enumerate(value, 1):
                    self.write(task_id, f"place{n}", f"第{place}名")
            else:
                self.write(task_id, field, value if field == "comment" else NAMES[value])


@contextmanager
def opened(path: Path) -> Iterator[OpenSheet]:
    """A sheet that is opened, and saved at the end."""
    book = openpyxl.load_workbook(path)
    yield OpenSheet(book)
    book.save(path)
