"""Tasks go out: one file of JSON lines a person, and a row of `review_tasks` for each."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipelines.core.files import sync, write_whole
from pipelines.core.home import Home
from pipelines.errors import RequestError, UnknownName
from pipelines.operations.review.judged import TABLE, items_of, keep_questions
from pipelines.operations.review.people import enrol
from pipelines.review.contract import CONTENTS, Kind, Task
from pipelines.review.importing import TABLE_NAME
from pipelines.review.items import Item, drawn
from pipelines.review.tasks import Assigned, Made, make_tasks
from pipelines.settings import Settings
from pipelines.store.store import Store
from pipelines.store.suppression import alone
from schemas.reviews import ReviewTasks

# E §3.2: so many reviewed chains were kept.
REVIEWED_CHAINS = 200

# From the items, in the order of their draw, the people, and the seed, to who is asked about what; `before` are rows
# of `review_tasks`: whom these items were assigned to already.
Assign = Callable[[Sequence[Item], Sequence[str], int, pl.DataFrame], Iterable[Assigned]]


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
        assigned = assign(list(by_id.values()), annotators, settings.seed, before.filter(kind=kind))
        made = make_tasks(by_id, assigned, seed=settings.seed, batch=batch, made=now)
        answered = _answered(store, kind)
        open_tasks = {
            annotator: [task for task in made.tasks.get(annotator, []) if task.task_id not in answered]
            for annotator in annotators
        }
        _publish(folder, open_tasks, lambda: _note(store, before, made))
    return Exported(folder, {one: len(tasks) for one, tasks in open_tasks.items()}, Counter(one.reason for one in lost))


def _size(kind: Kind) -> int | None:
    return REVIEWED_CHAINS if kind == "coe" else None


def _tasks(store: Store) -> pl.DataFrame:
    return store.read(TABLE).collect() if store.current(TABLE) else ReviewTasks.create_empty()


def _answered(store: Store, kind: Kind) -> set[str]:
    table = TABLE_NAME[kind]
    return set(store.read(table).select("task_id").collect()["task_id"]) if store.current(table) else set()


def _note(store: Store, before: pl.DataFrame, made: Made) -> None:
    """Adds tasks that are not there; one that went out before stays as it was."""
    new = made.rows.join(before, on="task_id", how="anti")
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
