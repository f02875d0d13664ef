"""Items, tasks and labels of reviews, written short."""

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.review.answers import Suggestion
from pipelines.review.assigning import Assigned
from pipelines.review.contract import Task
from pipelines.review.items import Item
from pipelines.review.tasks import task_of, task_row
from schemas.reviews import ReviewTasks

KEY = b"a key of sixteen"
WHEN = dt.datetime(2026, 11, 1, 8, 0, tzinfo=dt.UTC)
CHAIN = {"question": "我睡不着", "answer": "抱抱你。", "L1": "累", "L2": "怪自己", "L3": "想被听见", "L4": "先听"}
CER = {
    "history": [{"role": "seeker", "text": "我睡不着"}],
    "steps": ["阶段：探索\n刚开口", "情感：消极\n累", "策略：提问\n先问"],
    "replies": ["辛苦了。", "多久了？"],
}


def coe_item(post_id: str = "s:1", **more: str) -> Item:
    return Item("coe", post_id, f"hash of {post_id}", CHAIN | more, answer_id=f"{post_id}/0")


def cer_item(item_id: str = "s:1#2/1", hash_: str = "as it was") -> Item:
    return Item("cer", item_id, hash_, CER)


def rank_item(kind: Any = "rank", *models: str) -> Item:
    named = models or ("m1", "m2", "m3")
    return Item(kind, "q1", "h", {"question": "我睡不着", "answers": [f"{one} 说" for one in named]}, named)


def tasks_of(
    items: Sequence[Item], *assigned: Assigned, suggestion: Suggestion | None = None
) -> tuple[list[Task], pl.DataFrame]:
    """Tasks in the order of `assigned`, and their rows."""
    by_id = {item.item_id: item for item in items}
    rows = [task_row(by_id[one.item_id], one, KEY, "b", WHEN, suggestion) for one in assigned]
    tasks = [task_of(row, by_id[row["item_id"]]) for row in rows]
    return tasks, ReviewTasks.validate(pl.DataFrame(rows, schema=ReviewTasks.polars_schema()))


ANSWERS: dict[str, dict[str, Any]] = {
    "coe": {"verdict": "accept"},
    "cer": {"step1": True, "step2": True, "step3": False, "preference": "first"},
    "rank": {"places": [2, 1, 3]},
    "compare": {"preference": "second"},
}


def label(task: Task, **more: Any) -> dict[str, Any]:
    """A label of a task, with usual answers; `more` are other answers."""
    known = task.model_dump(include={"version", "kind", "task_id", "annotator", "shown"})
    return known | {"answers": ANSWERS[task.kind] | more, "seconds": 31.5, "at": "2026-11-01T08:00:00Z"}


def lines(*labels: dict[str, Any]) -> str:
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in labels)


def read_tasks(path: Path) -> list[Task]:
    """The tasks of a file that went out; its order stayed at home."""
    return [Task.model_validate_json(line) for line in path.read_text(encoding="utf-8").splitlines()]
