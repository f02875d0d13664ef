"""Tasks: an item as one person is to see it, and the rows of `review_tasks` that say what was shown to whom.

Who is asked about a candidate is decided elsewhere (`pipelines.review.assigning`). The order of showing and the id of a
task are drawn by the home's author key: nothing that goes out lets anybody work out which text is whose.
"""

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

from pipelines.review.answers import Suggestion, as_shown
from pipelines.review.assigning import Assigned
from pipelines.review.contract import Task, hash_of
from pipelines.review.items import Item
from schemas.dropped import Row
from schemas.ids import keyed_digest


def order_of(item: Item, annotator: str, key: bytes) -> list[int]:
    """The order in which somebody sees the shuffled texts of an item: every order is as likely."""
    parts = ("order", item.kind, item.item_id, annotator)
    return sorted(range(item.n_shuffled), key=lambda place: keyed_digest(key, *parts, str(place)))


def task_id(item: Item, annotator: str, key: bytes) -> str:
    """The id of a task: another version of the item, or another person, has another. It tells nothing of them."""
    return f"{item.kind}-" + keyed_digest(key, "task", item.kind, item.item_id, item.hash, annotator)[:16]


def task_row(
    item: Item, assigned: Assigned, key: bytes, batch: str, made: dt.datetime, suggestion: Suggestion | None = None
) -> Row:
    """The row of `review_tasks` of an item for one person."""
    row = {
        "task_id": task_id(item, assigned.annotator, key),
        "kind": item.kind,
        **assigned._asdict(),
        "order": order_of(item, assigned.annotator, key),
        "suggestion": suggestion.model_dump_json() if suggestion else None,
        "item": item.hash,
        "batch": batch,
        "made": made,
    }
    return {**row, "shown": hash_of(item.kind, _content(row, item))}


def task_of(row: Mapping[str, Any], item: Item) -> Task:
    """A task that went out, of its row and its item. Raises ValidationError for an item with an empty text."""
    known = {name: row[name] for name in ("task_id", "kind", "item_id", "annotator", "order", "shown")}
    return Task(**known, content=_content(row, item))


def _content(row: Mapping[str, Any], item: Item) -> dict[str, Any]:
    content = item.shown(row["order"])
    if row["suggestion"] is None:
        return content
    answers = json.loads(row["suggestion"])["answers"]
    return {**content, "suggestion": as_shown(item.kind, answers, row["order"])}
