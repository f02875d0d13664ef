"""Tasks go out: one file of JSON lines a person, and a row of `review_tasks` for each."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.core.files import sync, write_whole
from pipelines.core.home import Home
from pipelines.errors import RequestError, UnknownName
from pipelines.operations.review.judged import TABLE, items_of, keep_questions
from pipelines.operations.review.people import enrol
from pipelines.review.contract import CONTENTS, Kind, Task
from pipelines.review.importing import TABLE_NAME
from pipelines.review.items import Item, drawn
from pipelines.review.tasks import Assigned, order_of, task_of, task_row
from pipelines.settings import Settings
from pipelines.store.store import Store
from pipelines.store.suppression import alone
from schemas.reviews import ReviewTasks

# E §3.2: so many reviewed chains were kept.
REVIEWED_CHAINS = 200
# A rule for who is asked about what: of ids, people, `seed` and `earlier`, which stays, it gives what is new.
Assign = Callable[..., list[Assigned]]


@dataclass(frozen=True, slots=True)
class Exported:
    """What went out: files by pseudonym, how many tasks each holds, and why items were left out."""

    folder: Path
    tasks: dict[str, int]
    left_out: Counter[str]


def task_file(folder: Path, annotator: str) -> Path:
    """The file of somebody's tasks."""
    return folder / f"tasks-{annotator}.jsonl"


def export(
    home: Path,
    settings: Settings,
    kind: Kind,
    names: Sequence[str],
    assign: Assign,
    *,
    size: int | None = None,
    out: Path | None = None,
    questions: Path | None = None,
) -> Exported:
    """Writes the tasks of `names` that have no label yet.

    Args:
        home, settings: The home.
        kind: What is asked.
        names: The people.
        assign: Who is asked about what.
        size: How many items; None: all, of chains E's 200.
        out: A new or empty folder; None: one in the home.
        questions: Of rank and compare: a file of questions with the models' answers; None: those handed in before.

    The folder appears whole, after the rows of `review_tasks` are written. Raises UnknownName for the kind,
    RequestError for people or a folder that cannot be, UnreadableFile for the questions, NoVersion where there is
    nothing to judge, Busy where another process makes tables.
    """
    if kind not in CONTENTS:
        raise UnknownName("kind of review", kind, CONTENTS)
    if questions is not None and kind not in ("rank", "compare"):
        raise RequestError(f"{kind} takes its items from the tables", hint="leave out --questions")
    now = dt.datetime.now(dt.UTC)
    batch = f"{kind}-{now:%Y%m%dT%H%M%S%f}"
    folder = out or Home(home).review / batch
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError("the folder is not empty", where=folder, hint="name a new one: --out FOLDER")
    store = Store(Home(home).data)
    with alone(home):
        chosen = None if questions is None else set(keep_questions(home, kind, questions))
        annotators = enrol(home, names)
        items, lost = items_of(kind, home, store)
        wanted = [item for item in items if chosen is None or item.item_id in chosen]
        by_id = {one.item_id: one for one in drawn(wanted, size or _size(kind), settings.seed)}
        before = _tasks(store)
        earlier = _standing(before.filter(kind=kind), by_id)
        assigned = assign(by_id, annotators, seed=settings.seed, earlier=[one for one, _ in earlier])
        new = [(one, order_of(by_id[one.item_id], one.annotator, settings.seed)) for one in assigned]
        rows = []
        tasks: dict[str, list[Task]] = {annotator: [] for annotator in annotators}
        answered = _answered(store, kind)
        for one, order in [*earlier, *new]:
            task = task_of(by_id[one.item_id], one.annotator, order)
            rows.append(task_row(task, by_id[one.item_id], one.role, batch, now))
            if one.annotator in tasks and task.task_id not in answered:
                tasks[one.annotator].append(task)
        _publish(folder, tasks, lambda: _note(store, before, rows))
    return Exported(folder, {one: len(listed) for one, listed in tasks.items()}, Counter(one.reason for one in lost))


def _size(kind: Kind) -> int | None:
    return REVIEWED_CHAINS if kind == "coe" else None


def _tasks(store: Store) -> pl.DataFrame:
    return store.read(TABLE).collect() if store.current(TABLE) else ReviewTasks.create_empty()


def _answered(store: Store, kind: Kind) -> set[str]:
    table = TABLE_NAME[kind]
    return set(store.read(table).select("task_id").collect()["task_id"]) if store.current(table) else set()


def _standing(tasks: pl.DataFrame, items: Mapping[str, Item]) -> list[tuple[Assigned, list[int]]]:
    """What went out before about these items as they are today, each with the order of its texts."""
    return [
        (Assigned(row["item_id"], row["annotator"], row["role"]), row["order"])
        for row in tasks.iter_rows(named=True)
        if row["item_id"] in items and items[row["item_id"]].hash == row["item"]
    ]


def _note(store: Store, before: pl.DataFrame, rows: list[dict[str, Any]]) -> None:
    """Adds tasks that are not there; one that went out before stays as it was."""
    every = ReviewTasks.validate(pl.DataFrame(rows, schema=ReviewTasks.polars_schema()))
    new = every.join(before, on="task_id", how="anti")
    if new.height:
        store.write(TABLE, pl.concat([before, new]))


def _publish(folder: Path, tasks: dict[str, list[Task]], note: Callable[[], None]) -> None:
    """Writes the files, notes the tasks, and only then gives the folder its name: a killed export leaves none.

    `order` stays at home: it tells which of two replies is a person's.
    """
    scratch = folder.with_name(folder.name + ".part")
    for annotator, listed in tasks.items():
        lines = "".join(f"{task.model_dump_json(exclude={'order'})}\n" for task in listed)
        write_whole(task_file(scratch, annotator), lines.encode())
    note()
    if folder.exists():
        folder.rmdir()
    scratch.rename(folder)
    sync(folder.parent)
