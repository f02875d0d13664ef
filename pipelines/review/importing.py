"""Labels that come back: rows of `cer_votes`, `coe_reviews` and `rankings`, or everything that is wrong with them.

Whatever showed the tasks may have stored anything, and a file may have passed through many hands: each label is held
against the task that went out, and against the item as it is today. Of a task that has a label already a later one
counts, and the same one again is known, whatever has become of its item since.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import MAXYEAR, MINYEAR
from typing import Any, NamedTuple

import polars as pl
from pydantic import ValidationError

from pipelines.review.answers import PLACES, about
from pipelines.review.assigning import VOTES
from pipelines.review.consensus import KEY, QUESTIONS, STEPS
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
from pipelines.review.refusals import Refusal, RefusedError
from schemas.dropped import Row
from schemas.labels import Preference
from schemas.reasoning import COE_TAGS, blank, tags
from schemas.reviews import CerVotes, CoeReviews, Rankings
from schemas.table import Table

TABLE_OF: dict[Kind, type[Table]] = {"coe": CoeReviews, "cer": CerVotes, "rank": Rankings, "compare": Rankings}
TABLE_NAME: dict[Kind, str] = {"coe": "coe_reviews", "cer": "cer_votes", "rank": "rankings", "compare": "rankings"}

# When an answer was given and how long it took make it no other answer.
_ASIDE = ("seconds", "at")
_TASK_ID = re.compile(f"(?:{'|'.join(ANSWERS)})-[0-9a-f]{{16}}")
# The names that a refusal may repeat.
_FIELDS = {*Label.model_fields, *LEVELS, *(name for answers in ANSWERS.values() for name in answers.model_fields)}


class Entry(NamedTuple):
    """A label as it came: the file, its line or row, and its JSON."""

    file: str
    line: int
    text: str


class Labels(NamedTuple):
    """`rows` that are new or take the place of an earlier label, of which there are `replaced`; how many labels were
    there before; and `refusals`.
    """

    rows: pl.DataFrame
    replaced: int
    known: int
    refusals: list[Refusal]


def entries_of(name: str, text: str) -> Iterator[Entry]:
    """The labels of JSON lines, a line each."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield Entry(name, number, line)


def read_labels(
    kind: Kind,
    entries: Iterable[Entry],
    tasks: pl.DataFrame,
    items: Mapping[str, Item],
    before: pl.DataFrame,
    *,
    replacing: bool = False,
) -> Labels:
    """Reads labels of a kind.

    Args:
        kind: What is labelled.
        entries: The labels as they came.
        tasks: Rows of `review_tasks`; `items`: what there is to judge today, by id.
        before: Rows of the kind's table. The same label again is known; a later one takes the place of an earlier one;
            any other of a task that has one is refused.
        replacing: Whether any label takes the place of an earlier one: a sheet does not say when it was filled in.

    Returns rows of the kind's table, and in the order of `entries` what is refused.
    """
    task_of = {row["task_id"]: row for row in tasks.filter(kind=kind).iter_rows(named=True)}
    row_of = {row["task_id"]: row for row in before.iter_rows(named=True)}
    read: dict[str, tuple[Entry, Row]] = {}
    refusals: dict[Entry, Refusal] = {}
    seen: set[str] = set()
    known = 0
    for entry in entries:
        try:
            label = _parse(kind, entry.text)
            task = _task(label, task_of)
            given = _given(label, task)
            if label.task_id in seen:
                raise RefusedError("twice")
            seen.add(label.task_id)
            there = row_of.get(label.task_id)
            if there is not None and all(there[name] == value for name, value in given.items() if name not in _ASIDE):
                known += 1
                continue
            if there is not None and not replacing and not _is_later(label, there):
                raise RefusedError("answered_otherwise")
            read[label.task_id] = entry, about(_item_of(task, items)) | given
        except RefusedError as error:
            refusals[entry] = Refusal(entry.file, entry.line, _named(entry.text), error.reason, error.detail)
    if kind == "cer":
        votes = [row for task_id, row in row_of.items() if task_id not in read]
        votes += [row for task_id, (_, row) in read.items() if task_id in row_of]
        for task_id in list(_not_asked([row for task_id, (_, row) in read.items() if task_id not in row_of], votes)):
            entry, _ = read.pop(task_id)
            refusals[entry] = Refusal(entry.file, entry.line, task_id, "third_not_asked")
    table = TABLE_OF[kind]
    frame = table.validate(pl.DataFrame([row for _, row in read.values()], schema=table.polars_schema()))
    return Labels(frame, sum(task_id in row_of for task_id in read), known, list(refusals.values()))


def _named(text: str) -> str | None:
    """The task that a label names, in whatever state the rest of it is; None for what is no id of ours."""
    found = re.search(rf'"task_id"\s*:\s*"({_TASK_ID.pattern})"', text)
    return found[1] if found else None


def _parse(kind: Kind, text: str) -> Label:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RefusedError("not_json") from error
    if not isinstance(record, dict):
        raise RefusedError("not_json")
    named = record.get("kind")
    if isinstance(named, str) and named in ANSWERS and named != kind:
        raise RefusedError("another_kind", named)
    try:
        ANSWERS[kind].model_validate(record.get("answers"))
        label = Label.model_validate_json(text)
    except ValidationError as error:
        raise RefusedError(*_problem(error)) from error
    if label.at is not None and (label.at.tzinfo is None or not MINYEAR < label.at.year < MAXYEAR):
        raise RefusedError("wrong_form", "at: has no time zone, or is no time of ours")
    if label.seconds is not None and not math.isfinite(label.seconds):
        raise RefusedError("wrong_form", "seconds: is no number")
    return label


def _problem(error: ValidationError) -> tuple[str, str]:
    """The reason and the detail of the first thing that is wrong with a label's form."""
    first = error.errors(include_input=False, include_url=False)[0]
    named = [str(part) for part in first["loc"] if part in _FIELDS]
    where = ".".join(named)
    if where in (*QUESTIONS, "verdict", "places"):
        if first["type"] == "missing":
            return "missing_answer", where
        if first["type"] in ("literal_error", "bool_type"):
            return "undefined_choice", where
    return "wrong_form", f"{where or 'answers'}: {first['msg']}"


def _task(label: Label, task_of: Mapping[str, Row]) -> Row:
    """The task that a label is about, where it was shown to the one who labelled it."""
    task = task_of.get(label.task_id)
    if task is None:
        raise RefusedError("unknown_task")
    if task["annotator"] != label.annotator:
        raise RefusedError("another_person")
    if task["shown"] != label.shown:
        raise RefusedError("another_text")
    return task


def _item_of(task: Row, items: Mapping[str, Item]) -> Item:
    item = items.get(task["item_id"])
    if item is None or item.hash != task["item"]:
        raise RefusedError("item_changed")
    return item


def _is_later(label: Label, there: Row) -> bool:
    """Whether a label was given after the one that is there."""
    return label.at is not None and there["at"] is not None and label.at > there["at"]


def _given(label: Label, task: Row) -> Row:
    """The columns that say who answered, and what, whatever has become of the item."""
    answers = label.read()
    common = label.model_dump(include={"task_id", "annotator", "seconds", "at"})
    common |= {"role": task["role"], "suggested": task["suggestion"] is not None, "comment": answers.comment or None}
    match answers:
        case CoeAnswers():
            return common | {"verdict": answers.verdict} | _edits(answers)
        case CerAnswers():
            turned = {"preference": turned_back(answers.preference, task["order"])}
            return common | answers.model_dump(include=set(STEPS)) | turned
        case RankAnswers():
            return common | {"places": _places(answers.places, task["order"])}
        case CompareAnswers():
            return common | {"places": _places(PLACES[answers.preference], task["order"])}


def _edits(answers: CoeAnswers) -> Row:
    edits = {str(level): text for level, text in answers.edits.items()}
    for level, text in edits.items():
        if blank(text) or "\0" in text or tags(text, COE_TAGS):
            raise RefusedError("wrong_form", f"edits.{level}: no text, or with a tag of the chain's own format")
    return {level: edits.get(level) for level in LEVELS}


def _places(places: Sequence[int], order: Sequence[int]) -> list[int]:
    """Places of answers as shown as those of the item's own order."""
    if len(places) != len(order):
        raise RefusedError("missing_answer", "places")
    place_of = dict(zip(order, places, strict=True))
    return [place_of[text] for text in sorted(place_of)]


def turned_back(choice: Choice, order: Sequence[int]) -> Preference:
    """What a choice between two replies as shown says of the reference (first) and the candidate (second)."""
    if choice in ("both", "neither"):
        return choice
    names: tuple[Preference, Preference] = ("first", "second")
    return names[order[names.index(choice)]]


def _not_asked(new: Sequence[Row], before: Sequence[Row]) -> Iterator[str]:
    """The tasks of votes on items that have enough of them: a third one of a labeller, and that of an adjudicator
    where two do not differ.
    """
    votes_on: dict[tuple[Any, ...], list[Row]] = {}
    for row in before:
        if row["role"] == "annotator":
            votes_on.setdefault(_item(row), []).append(row)
    for row in new:
        if row["role"] == "annotator":
            votes = votes_on.setdefault(_item(row), [])
            if len(votes) < VOTES:
                votes.append(row)
            else:
                yield row["task_id"]
    for row in new:
        if row["role"] == "adjudicator" and not differ(votes_on.get(_item(row), [])):
            yield row["task_id"]


def _item(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in (*KEY, "labelled"))


def differ(votes: Sequence[Mapping[str, Any]]) -> bool:
    """Whether there are two votes on an item, and these differ in anything."""
    given = {tuple(vote[name] for name in QUESTIONS) for vote in votes}
    return len(votes) >= VOTES and len(given) > 1
