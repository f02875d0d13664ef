"""Tasks: an item as one person is to see it, and the rows of `review_tasks` that say what was shown to whom.

Who is asked about a candidate is decided elsewhere (`pipelines.review.assigning`). The order of showing is drawn by
seed, item and person, so that neither another item nor another person moves it.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from pipelines.review.assigning import Assigned, Role
from pipelines.review.contract import Task, hash_of
from pipelines.review.items import Item
from schemas.ids import digest, unit_interval


def order_of(item: Item, annotator: str, seed: int) -> list[int]:
    """The order in which somebody sees the shuffled texts of an item: every order is as likely."""
    parts = (seed, "order", item.kind, item.item_id, annotator)
    return sorted(range(item.n_shuffled), key=lambda place: unit_interval(*parts, place))


def task_id(item: Item, annotator: str) -> str:
    """The id of a task: it follows from item, hash and person, and tells nothing of them."""
    return f"{item.kind}-" + digest("\x1f".join((item.kind, item.item_id, item.hash, annotator)))


def task_of(item: Item, annotator: str, order: Sequence[int]) -> Task:
    """An item as somebody is to see it. Raises ValidationError for an item with an empty text."""
    content = item.shown(order)
    return Task(
        kind=item.kind,
        task_id=task_id(item, annotator),
        item_id=item.item_id,
        annotator=annotator,
        order=list(order),
        shown=hash_of(item.kind, content),
        content=content,
    )


def task_row(task: Task, item: Item, role: Role, batch: str, made: dt.datetime) -> dict[str, Any]:
    """The row of `review_tasks` of a task."""
    of_task = task.model_dump(include={"kind", "task_id", "item_id", "annotator", "order", "shown"})
    return of_task | {"role": role, "item": item.hash, "batch": batch, "made": made}


def assign_one(
    item_ids: Iterable[str], people: Sequence[str], *, seed: int = 0, earlier: Collection[Assigned] = ()
) -> list[Assigned]:
    """Gives each item to one person (E: a professional reviews each chain), everybody as many as anybody else but for
    one. Returns what is new.
    """
    done = {one.item_id for one in earlier}
    new = [item_id for item_id in item_ids if item_id not in done]
    by_lot = sorted(people, key=lambda person: unit_interval(seed, "who", person))
    return [Assigned(item_id, by_lot[place % len(by_lot)]) for place, item_id in enumerate(new)]


def assign_all(
    item_ids: Iterable[str], people: Sequence[str], *, seed: int = 0, earlier: Collection[Assigned] = ()
) -> list[Assigned]:
    """Gives each item to everybody, in an order of their own (M, E: every rater ranks all). Returns what is new."""
    done = {(one.item_id, one.annotator) for one in earlier}
    ids = list(item_ids)
    return [
        Assigned(item_id, person)
        for person in people
        for item_id in sorted(ids, key=lambda one: unit_interval(seed, "shown", person, one))
        if (item_id, person) not in done
    ]
