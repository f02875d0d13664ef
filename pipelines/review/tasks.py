"""Tasks: an item as one person is to see it, and the rows of `review_tasks` that say what was shown to whom.

Who is asked about what is decided elsewhere (`pipelines.review.assigning`); here the order of showing is drawn, by
seed, item and person, so that neither another item nor another person moves it.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import polars as pl

from pipelines.review.contract import Task, hash_of
from pipelines.review.items import Item
from schemas.ids import digest, unit_interval
from schemas.reviews import ReviewTasks

Role = Literal["annotator", "adjudicator", "gold"]


class Assigned(NamedTuple):
    """Who is asked about an item, and as what."""

    item_id: str
    annotator: str
    role: Role = "annotator"


def order_of(item: Item, annotator: str, seed: int) -> list[int]:
    """The order in which somebody sees the shuffled texts of an item: every order is as likely."""
    parts = (seed, "order", item.kind, item.item_id, annotator)
    return sorted(range(item.n_shuffled), key=lambda place: unit_interval(*parts, place))


def task_id(item: Item, annotator: str) -> str:
    """The id of a task: it follows from item, hash and person, and tells nothing of them."""
    return f"{item.kind}-" + digest("\x1f".join((item.kind, item.item_id, item.hash, annotator)))


def task_of(item: Item, annotator: str, seed: int) -> Task:
    """An item as somebody is to see it. Raises ValidationError for an item with an empty text."""
    order = order_of(item, annotator, seed)
    content = item.shown(order)
    return Task(
        kind=item.kind,
        task_id=task_id(item, annotator),
        item_id=item.item_id,
        annotator=annotator,
        order=order,
        shown=hash_of(item.kind, content),
        content=content,
    )


class Made(NamedTuple):
    """Tasks in the order of showing, by person; and their rows of `review_tasks`."""

    tasks: dict[str, list[Task]]
    rows: pl.DataFrame


def make_tasks(
    items: Mapping[str, Item], assigned: Iterable[Assigned], *, seed: int, batch: str, made: dt.datetime
) -> Made:
    """The tasks of what was assigned, `items` being by id."""
    tasks: dict[str, list[Task]] = {}
    rows = []
    for one in assigned:
        item = items[one.item_id]
        task = task_of(item, one.annotator, seed)
        tasks.setdefault(one.annotator, []).append(task)
        of_task = task.model_dump(include={"kind", "task_id", "item_id", "annotator", "order", "shown"})
        rows.append({**of_task, "role": one.role, "item": item.hash, "batch": batch, "made": made})
    return Made(tasks, ReviewTasks.validate(pl.DataFrame(rows, schema=ReviewTasks.polars_schema())))
