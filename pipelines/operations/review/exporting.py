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
from pipelines.errors import RequestError
from pipelines.operations.review.judged import TABLE, items_of, keep_questions, require_kind
from pipelines.operations.review.people import enrol
from pipelines.review.assigning import Assigned, assign, assign_third
from pipelines.review.consensus import consensus
from pipelines.review.contract import Kind, Task
from pipelines.review.importing import TABLE_NAME
from pipelines.review.items import REVIEWED_CHAINS, Item, drawn
from pipelines.review.pages import write_page
from pipelines.review.sheets import write_sheet
from pipelines.review.tasks import assign_all, assign_one, order_of, task_of, task_row
from pipelines.settings import Settings
from pipelines.store.store import Store
from pipelines.store.suppression import alone
from schemas.reviews import CerVotes, ReviewTasks

# A rule for who is asked about what: of ids, people, `seed` and `earlier`, which stays, it gives what is new.
Rule = Callable[..., list[Assigned]]
RULES: dict[Kind, Rule] = {"coe": assign_one, "cer": assign, "rank": assign_all, "compare": assign_all}
# What writes the tasks of one person in another form.
Form = Callable[[Sequence[Task], Path], None]
SUFFIXES: dict[Form, str] = {write_sheet: ".xlsx", write_page: ".html"}


@dataclass(frozen=True, slots=True)
class Exported:
    """What went out: files by pseudonym, how many tasks each holds, and why items were left out."""

    folder: Path
    tasks: dict[str, int]
    left_out: Counter[str]


def task_file(folder: Path, annotator: str, suffix: str = ".jsonl") -> Path:
    """The file of somebody's tasks: JSON lines, a spreadsheet (.xlsx) or a page (.html)."""
    return folder / f"tasks-{annotator}{suffix}"


def export(
    home: Path,
    settings: Settings,
    name: str,
    people: Sequence[str],
    *,
    third: bool = False,
    size: int | None = None,
    out: Path | None = None,
    questions: Path | None = None,
    sheet: bool = False,
    page: bool = False,
) -> Exported:
    """Writes the tasks of `people` that have no label yet.

    Args:
        home, settings: The home.
        name: The kind: what is asked.
        people: Their names.
        third: Of cer: whether the items are given out on which two votes differ, to a third person each, and no others.
        size: How many items; None: all, of chains E's 200.
        out: A new or empty folder; None: one in the home.
        questions: Of rank and compare: a file of questions with the models' answers; None: those handed in before.
        sheet, page: Whether there is a spreadsheet, and a page for a browser, beside each person's file.

    The folder appears whole, after the rows of `review_tasks` are written. Raises UnknownName for the kind,
    RequestError for people or a folder that cannot be, UnreadableFile for the questions, NoVersion where there is
    nothing to judge, Busy where another process makes tables.
    """
    kind = require_kind(name)
    if questions is not None and kind not in ("rank", "compare"):
        raise RequestError(f"{kind} takes its items from the tables", hint="leave out --questions")
    if third and kind != "cer":
        raise RequestError(f"nobody adjudicates {kind}", hint="leave out --third")
    now = dt.datetime.now(dt.UTC)
    batch = f"{kind}-{now:%Y%m%dT%H%M%S%f}"
    folder = out or Home(home).review / batch
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError("the folder is not empty", where=folder, hint="name a new one: --out FOLDER")
    store = Store(Home(home).data)
    with alone(home):
        chosen = None if questions is None else set(keep_questions(home, kind, questions))
        annotators = enrol(home, people)
        items, lost = items_of(kind, home, store)
        wanted = [item for item in items if chosen is None or item.item_id in chosen]
        by_id = {one.item_id: one for one in drawn(wanted, size or _size(kind), settings.seed)}
        before = _tasks(store)
        earlier = _standing(before.filter(kind=kind), by_id)
        rule = _third(store, by_id) if third else RULES[kind]
        assigned = rule(by_id, annotators, seed=settings.seed, earlier=[one for one, _ in earlier])
        new = [(one, order_of(by_id[one.item_id], one.annotator, settings.seed)) for one in assigned]
        rows = []
        tasks: dict[str, list[Task]] = {annotator: [] for annotator in annotators}
        answered = _answered(store, kind)
        for one, order in [*earlier, *new]:
            task = task_of(by_id[one.item_id], one.annotator, order)
            rows.append(task_row(task, by_id[one.item_id], one.role, batch, now))
            if one.annotator in tasks and task.task_id not in answered and (one.role == "adjudicator") == third:
                tasks[one.annotator].append(task)
        forms = [write for wanted, write in ((sheet, write_sheet), (page, write_page)) if wanted]
        _publish(folder, tasks, forms, lambda: _note(store, before, rows))
    return Exported(folder, {one: len(listed) for one, listed in tasks.items()}, Counter(one.reason for one in lost))


def sent_tasks(home: Path, name: str, *, answered: bool = False) -> list[Task]:
    """The tasks of a kind that went out, with their contents and orders, of the items as they are today: for whoever
    hands them on, or reads what comes back in another form. Those that have a label are there if `answered`.

    Raises UnknownName for the kind, and NoVersion where there is nothing to judge.
    """
    kind, store = require_kind(name), Store(Home(home).data)
    items = {item.item_id: item for item in items_of(kind, home, store)[0]}
    done = set() if answered else _answered(store, kind)
    tasks = [
        task_of(items[one.item_id], one.annotator, order)
        for one, order in _standing(_tasks(store).filter(kind=kind), items)
    ]
    return [task for task in tasks if task.task_id not in done]


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


def _third(store: Store, items: Mapping[str, Item]) -> Rule:
    """The rule that gives out what two differ on."""
    votes = store.read("cer_votes").collect() if store.current("cer_votes") else CerVotes.create_empty()
    waiting = consensus(votes, {item_id: item.hash for item_id, item in items.items()}).waiting
    voters = {one.item_id: one.voters for one in waiting if one.vote == "third"}

    def rule(_: object, people: Sequence[str], *, seed: int, earlier: Sequence[Assigned]) -> list[Assigned]:
        return assign_third(voters, people, seed=seed, earlier=earlier)

    return rule


def _note(store: Store, before: pl.DataFrame, rows: list[dict[str, Any]]) -> None:
    """Adds tasks that are not there; one that went out before stays as it was."""
    every = ReviewTasks.validate(pl.DataFrame(rows, schema=ReviewTasks.polars_schema()))
    new = every.join(before, on="task_id", how="anti")
    if new.height:
        store.write(TABLE, pl.concat([before, new]))


def _publish(folder: Path, tasks: dict[str, list[Task]], forms: Sequence[Form], note: Callable[[], None]) -> None:
    """Writes the files, notes the tasks, and only then gives the folder its name: a killed export leaves none.

    `order` stays at home: it tells which of two replies is a person's.
    """
    scratch = folder.with_name(folder.name + ".part")
    for annotator, listed in tasks.items():
        lines = "".join(f"{task.model_dump_json(exclude={'order'})}\n" for task in listed)
        write_whole(task_file(scratch, annotator), lines.encode())
        for write in forms if listed else ():
            write(listed, task_file(scratch, annotator, SUFFIXES[write]))
    note()
    if folder.exists():
        folder.rmdir()
    scratch.rename(folder)
    sync(folder.parent)
