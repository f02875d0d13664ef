"""What models suggest to people: a file of answers, each shown with its task and marked as a model's.

A suggestion never counts as somebody's answer. Labels that were given beside one say so, and agreement leaves them out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from pipelines.review.contract import Kind, Text


class Suggestion(BaseModel):
    """A line of the file: what `model` answers about an item, in the item's own order of texts (`first` of a candidate
    is the reference).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    item_id: Text
    model: Text
    answers: dict[str, Any]


def as_shown(kind: Kind, answers: Mapping[str, Any], order: Sequence[int]) -> dict[str, Any]:
    """Answers about an item as answers about a task, whose texts stand in `order`."""
    if kind == "rank":
        return {**answers, "places": [answers["places"][text] for text in order]}
    if kind in ("cer", "compare") and answers["preference"] in ("first", "second"):
        names = ("first", "second")
        return {**answers, "preference": names[list(order).index(names.index(answers["preference"]))]}
    return dict(answers)
