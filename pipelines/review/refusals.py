"""Why labels that come back are refused, whatever brought them."""

from dataclasses import dataclass

REASONS = {
    "not_json": "the line is no JSON object",
    "wrong_form": "it has not the form of a label",
    "missing_answer": "a question is not answered",
    "undefined_choice": "an answer is none of its choices",
    "another_kind": "it is of another kind than the import",
    "unknown_task": "no such task went out, or it was taken back",
    "another_person": "the task was somebody else's",
    "another_text": "another version of the text was labelled",
    "item_changed": "the item has been made again since, or is not to be shown any more",
    "twice": "the task has a label already in what is imported",
    "answered_otherwise": "the task was answered before, and otherwise, and this label is not a later one",
    "third_not_asked": "the item needs no third vote",
    # Of a spreadsheet alone:
    "layout": "it is not the sheet that went out",
    "formula": "a cell holds a formula",
    "edited_source": "a text that was to be read was changed",
    "no_text": "a cell holds no text",
    "contradiction": "two answers do not go together",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A label that is not taken: `line` of a file of JSON lines, or row of a spreadsheet; `reason` out of REASONS;
    `detail` names fields, never what somebody wrote.
    """

    file: str
    line: int
    task_id: str | None
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        place = "row" if self.file.lower().endswith(".xlsx") else "line"
        task = f", task {self.task_id}" if self.task_id else ""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.file}, {place} {self.line}{task}: {REASONS[self.reason]}{detail}"


class RefusedError(Exception):
    """Raised within `pipelines.review` for a label that is not taken; the reader of the file makes a Refusal of it.
    `line`: where other than in the first line of the label.
    """

    def __init__(self, reason: str, detail: str = "", line: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.detail, self.line = reason, detail, line
