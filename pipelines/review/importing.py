"""Labels that come back: rows of `cer_votes`, `coe_reviews` and `rankings`, or everything that is wrong with them.

Whatever showed the tasks may have stored anything, and a file may have passed through many hands: each label is held
against the task that went out, and against the item as it is today. Nothing is taken where anything is refused.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl
from pydantic import ValidationError

from pipelines.review.contract import (
    ANSWERS,
    CerAnswers,
    Choice,
    CoeAnswers,
    CompareAnswers,
    Kind,
    Label,
    RankAnswers,
)
from pipelines.review.items import LEVELS, Item
from schemas.labels import Preference
from schemas.reasoning import COE_TAGS, blank, tags
from schemas.reviews import CerVotes, CoeReviews, Rankings
from schemas.table import Table

TABLE_OF: dict[Kind, type[Table]] = {"coe": CoeReviews, "cer": CerVotes, "rank": Rankings, "compare": Rankings}
TABLE_NAME: dict[Kind, str] = {"coe": "coe_reviews", "cer": "cer_votes", "rank": "rankings", "compare": "rankings"}

# Why a label is refused.
REASONS = {
    "not_json": "the line is no JSON object",
    "wrong_form": "it has not the form of a label",
    "missing_answer": "a question is not answered",
    "undefined_choice": "an answer is none of its choices",
    "another_kind": "it is of another kind than the import",
    "unknown_task": "no such task went out",
    "another_person": "the task was somebody else's",
    "another_text": "another version of the text was labelled",
    "item_changed": "the item has been made again since, or is there no more",
    "twice": "the task has a label already in what is imported",
    "answered_otherwise": "the task was answered before, and otherwise",
    "third_not_asked": "the item needs no third vote",
}
# C: so many people label each item, and a third where they differ.
VOTES = 2
# When an answer was given and how long it took make it no other answer.
_ASIDE = ("seconds", "at")
_VERDICTS = ("step1", "step2", "step3", "preference")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A label that is not taken: `reason` out of REASONS; `detail` names fields, never what somebody wrote."""

    file: str
    line: int
    task_id: str | None
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        task = f", task {self.task_id}" if self.task_id else ""
        return (
            f"{self.file}, line {self.line}{task}: {REASONS[self.reason]}{f' ({self.detail})' if self.detail else ''}"
        )


class Labels(NamedTuple):
    """`rows` that are new, how many labels were there before, and `refusals`: with any, there are no rows."""

    rows: pl.DataFrame
    known: int
    refusals: list[Refusal]


class _RefusedError(Exception):
    """Why a label is refused: raised and caught here."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail


@dataclass(slots=True)
class _Line:
    """A line of a file; `task_id` is the task that it names, once it could be read."""

    file: str
    number: int
    text: str
    task_id: str | None = None

    def refuse(self, reason: str, detail: str = "") -> Refusal:
        return Refusal(self.file, self.number, self.task_id, reason, detail)


def read_labels(
    kind: Kind, files: Mapping[str, str], tasks: pl.DataFrame, items: Mapping[str, Item], before: pl.DataFrame
) -> Labels:
    """Reads labels of a kind.

    Args:
        kind: What is labelled.
        files: Texts of JSON lines, by name.
        tasks: Rows of `review_tasks`; `items`: what there is to judge today, by id.
        before: Rows of the kind's table: the same label again is known, another of its task is refused.

    Returns rows of the kind's table.
    """
    task_of = {row["task_id"]: row for row in tasks.filter(kind=kind).iter_rows(named=True)}
    row_of = {row["task_id"]: row for row in before.iter_rows(named=True)}
    new: dict[str, tuple[_Line, dict[str, Any]]] = {}
    seen: set[str] = set()
    refusals: list[Refusal] = []
    known = 0
    for line in _lines(files):
        try:
            label = _parse(kind, line)
            task = _task(label, task_of)
            row = _row(label, task, _item_of(task, items))
            if label.task_id in seen:
                raise _RefusedError("twice")
            seen.add(label.task_id)
            if (there := row_of.get(label.task_id)) is None:
                new[label.task_id] = line, row
            elif _answers(row) == _answers(there):
                known += 1
            else:
                raise _RefusedError("answered_otherwise")
        except _RefusedError as error:
            refusals.append(line.refuse(error.reason, error.detail))
    if kind == "cer":
        refusals += _not_asked(list(new.values()), list(row_of.values()))
    table = TABLE_OF[kind]
    rows = [] if refusals else [row for _, row in new.values()]
    frame = table.validate(pl.DataFrame(rows, schema=table.polars_schema()))
    names = list(files)
    return Labels(frame, known, sorted(refusals, key=lambda one: (names.index(one.file), one.line)))


def _lines(files: Mapping[str, str]) -> Iterator[_Line]:
    for name, text in files.items():
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield _Line(name, number, line)


def _parse(kind: Kind, line: _Line) -> Label:
    try:
        record = json.loads(line.text)
    except ValueError as error:
        raise _RefusedError("not_json") from error
    if not isinstance(record, dict):
        raise _RefusedError("not_json")
    line.task_id = record["task_id"] if isinstance(record.get("task_id"), str) else None
    if record.get("kind") in ANSWERS and record["kind"] != kind:
        raise _RefusedError("another_kind", record["kind"])
    try:
        ANSWERS[kind].model_validate(record.get("answers"))
        label = Label.model_validate_json(line.text)
    except ValidationError as error:
        raise _RefusedError(*_problem(error)) from error
    if label.at is not None and label.at.tzinfo is None:
        raise _RefusedError("wrong_form", "at: has no time zone")
    if label.seconds is not None and not math.isfinite(label.seconds):
        raise _RefusedError("wrong_form", "seconds: is no number")
    return label


def _problem(error: ValidationError) -> tuple[str, str]:
    """The reason and the detail of the first thing that is wrong with a label's form."""
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    if where in (*_VERDICTS, "verdict", "places"):
        if first["type"] == "missing":
            return "missing_answer", where
        if first["type"] in ("literal_error", "bool_type"):
            return "undefined_choice", where
    return "wrong_form", f"{where or 'answers'}: {first['msg']}"


def _task(label: Label, task_of: Mapping[str, dict[str, Any]]) -> Mapping[str, Any]:
    """The task that a label is about, where it was shown to whoever labelled it."""
    task = task_of.get(label.task_id)
    if task is None:
        raise _RefusedError("unknown_task")
    if task["annotator"] != label.annotator:
        raise _RefusedError("another_person")
    if task["shown"] != label.shown:
        raise _RefusedError("another_text")
    return task


def _item_of(task: Mapping[str, Any], items: Mapping[str, Item]) -> Item:
    item = items.get(task["item_id"])
    if item is None or item.hash != task["item"]:
        raise _RefusedError("item_changed")
    return item


def _row(label: Label, task: Mapping[str, Any], item: Item) -> dict[str, Any]:
    answers = label.read()
    common = label.model_dump(include={"task_id", "annotator", "seconds", "at"})
    common |= {"labelled": item.hash, "comment": answers.comment or None}
    match answers:
        case CoeAnswers():
            return common | _of_chain(answers, item)
        case CerAnswers():
            return common | _of_candidate(answers, task, item)
        case RankAnswers():
            return common | _of_ranking(answers.places, task, item)
        case CompareAnswers():
            return common | _of_ranking(_PLACES[answers.preference], task, item)


def _of_chain(answers: CoeAnswers, item: Item) -> dict[str, Any]:
    edits = {str(level): text for level, text in answers.edits.items()}
    for level, text in edits.items():
        if blank(text) or tags(text, COE_TAGS):
            raise _RefusedError("wrong_form", f"edits.{level}: empty, or with a tag of the chain's own format")
    ids = {"post_id": item.item_id, "answer_id": item.answer_id}
    return ids | {"verdict": answers.verdict} | {level: edits.get(level) for level in LEVELS}


def _of_candidate(answers: CerAnswers, task: Mapping[str, Any], item: Item) -> dict[str, Any]:
    dialogue_id, _, numbers = item.item_id.rpartition("#")
    number, candidate = map(int, numbers.split("/"))
    given = answers.model_dump(include={"step1", "step2", "step3"})
    given |= {"preference": turned_back(answers.preference, task["order"]), "role": task["role"]}
    return {"dialogue_id": dialogue_id, "round": number, "candidate": candidate} | given


def _of_ranking(places: Sequence[int], task: Mapping[str, Any], item: Item) -> dict[str, Any]:
    if len(places) != len(task["order"]):
        raise _RefusedError("missing_answer", "places")
    place_of = dict(zip(task["order"], places, strict=True))
    in_order = [place_of[text] for text in sorted(place_of)]
    return {"item_id": item.item_id, "kind": item.kind, "models": list(item.models), "places": in_order}


# Of two answers as shown. Both have the same place where neither is better: the first where both are good.
_PLACES: dict[Choice, list[int]] = {"first": [1, 2], "second": [2, 1], "both": [1, 1], "neither": [2, 2]}


def turned_back(choice: Choice, order: Sequence[int]) -> Preference:
    """What a choice between two replies as shown says of the reference (first) and the candidate (second)."""
    if choice in ("both", "neither"):
        return choice
    names: tuple[Preference, Preference] = ("first", "second")
    return names[order[names.index(choice)]]


def _answers(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _ASIDE}


def _not_asked(new: Sequence[tuple[_Line, dict[str, Any]]], before: Sequence[Mapping[str, Any]]) -> Iterator[Refusal]:
    """The votes on items that have enough of them: a third one of a labeller, and that of an adjudicator where two do
    not differ.
    """
    votes_on: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in before:
        if row["role"] == "annotator":
            votes_on.setdefault(_item(row), []).append(row)
    for line, row in new:
        if row["role"] == "annotator":
            votes = votes_on.setdefault(_item(row), [])
            if len(votes) < VOTES:
                votes.append(row)
            else:
                yield line.refuse("third_not_asked")
    for line, row in new:
        if row["role"] == "adjudicator" and not differ(votes_on.get(_item(row), [])):
            yield line.refuse("third_not_asked")


def _item(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["dialogue_id"], row["round"], row["candidate"], row["labelled"]


def differ(votes: Sequence[Mapping[str, Any]]) -> bool:
    """Whether there are two votes on an item, and these differ in anything."""
    given = {tuple(vote[name] for name in _VERDICTS) for vote in votes}
    return len(votes) >= VOTES and len(given) > 1
