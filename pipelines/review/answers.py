"""Answers about an item by somebody who is not asked: what is known of it already, and what a model suggests.

Both are files of JSON lines. Their answers are those of a label, but about the item itself: `first` of a candidate is
the reference, places are in the order of the answers. Neither ever counts as somebody's label; one that was given
beside a suggestion says so, and agreement leaves it out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.review.consensus import KEY, QUESTIONS
from pipelines.review.contract import ANSWERS, Choice, Kind, Text
from pipelines.review.items import Item
from schemas.dropped import Row
from schemas.ids import parse_candidate_id


class ItemAnswers(BaseModel):
    """Answers about an item."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    item_id: Text
    answers: dict[str, Any]


class Known(ItemAnswers):
    """What is right, and why. An item of `calibration` is shown to everybody first, any other one among the rest."""

    calibration: bool = False
    why: str = ""


class Suggestion(ItemAnswers):
    """What a model says."""

    model: Text


def problem_of(kind: Kind, one: ItemAnswers, item: Item | None) -> str | None:
    """What is wrong with answers about an item, None for nothing; without a word of theirs."""
    if item is None:
        return "there is no such item to judge"
    try:
        answers = ANSWERS[kind].model_validate(one.answers)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        return f"the answers are none of {kind}: {first['msg']}"
    places = getattr(answers, "places", None)
    return None if places is None or len(places) == item.n_shuffled else f"{item.n_shuffled} answers are to be ranked"


# Of two answers: both have the same place where neither is better, the first where both are good.
PLACES: dict[Choice, list[int]] = {"first": [1, 2], "second": [2, 1], "both": [1, 1], "neither": [2, 2]}


def columns_of(kind: Kind, answers: Mapping[str, Any]) -> Row:
    """What answers about an item are in the table of the labels of its kind, comments and edits aside."""
    match kind:
        case "coe":
            return {"verdict": answers["verdict"]}
        case "cer":
            return {question: answers[question] for question in QUESTIONS}
        case "rank":
            return {"places": answers["places"]}
    return {"places": PLACES[answers["preference"]]}


def about(item: Item) -> Row:
    """The columns that say what was judged, in the table of the labels of its kind."""
    columns: Row = {"labelled": item.hash}
    match item.kind:
        case "coe":
            return columns | {"post_id": item.item_id, "answer_id": item.answer_id}
        case "cer":
            return columns | dict(zip(KEY, parse_candidate_id(item.item_id), strict=True))
    return columns | {"item_id": item.item_id, "kind": item.kind, "models": list(item.models)}


def as_shown(kind: Kind, answers: Mapping[str, Any], order: Sequence[int]) -> dict[str, Any]:
    """Answers about an item as answers about a task, whose texts stand in `order`."""
    if kind == "rank":
        return {**answers, "places": [answers["places"][text] for text in order]}
    if kind in ("cer", "compare") and answers["preference"] in ("first", "second"):
        names = ("first", "second")
        return {**answers, "preference": names[list(order).index(names.index(answers["preference"]))]}
    return dict(answers)
