"""Tasks go out: one file of JSON lines a person, and a row of `review_tasks` for each."""

import datetime as dt
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import polars as pl

from pipelines.core.files import sync, write_whole
from pipelines.core.home import Home
from pipelines.errors import RequestError
from pipelines.operations.review.judged import (
    TABLE,
    items_of,
    keep_known,
    keep_questions,
    known_answers,
    read_answers,
    require_kind,
)
from pipelines.operations.review.people import enrol, require_enrolled
from pipelines.review.answers import Known, Suggestion
from pipelines.review.assigning import (
    COUNTING,
    VOTES,
    Assigned,
    assign,
    assign_all,
    assign_known,
    assign_third,
    in_one_round,
)
from pipelines.review.consensus import consensus
from pipelines.review.contract import Kind, Task
from pipelines.review.importing import TABLE_NAME
from pipelines.review.items import REVIEWED_CHAINS, Item, drawn
from pipelines.review.pages import write_page
from pipelines.review.sheets import write_sheet
from pipelines.review.tasks import task_of, task_row
from pipelines.settings import Settings, author_key
from pipelines.store.store import Store
from pipelines.store.suppression import alone
from schemas.dropped import Row
from schemas.reviews import CerVotes, ReviewTasks

# Who is asked about what, of what stands already: what is new.
Rule = Callable[[Sequence[Assigned]], list[Assigned]]
# What writes the tasks of one person in another form, those of calibration first.
Form = Callable[[Sequence[Task], Path, Sequence[Task]], None]
SUFFIXES: dict[Form, str] = {write_sheet: ".xlsx", write_page: ".html"}


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What an export is to give out.

    `third`: of cer, the items on which two votes differ, to a third person each, and no others. `size`: how many items;
    None: all, of chains E's 200. `each`: of coe, how many people review a chain. `questions`: of rank and compare, a
    file of questions with the models' answers; None: those handed in before. `gold`: a file of known answers.
    `suggestions`: a file of what a model answers, shown with what is new. `sheet`, `page`: whether there is a
    spreadsheet, and a page for a browser, beside each person's file.
    """

    third: bool = False
    size: int | None = None
    each: int = 1
    questions: Path | None = None
    gold: Path | None = None
    suggestions: Path | None = None
    sheet: bool = False
    page: bool = False


@dataclass(frozen=True, slots=True)
class Exported:
    """What went out: files by pseudonym, how many tasks each holds, and why items were left out. `others`: how many new
    tasks people have who were not named. `in_one_round`: how many votes are asked of people who see another candidate
    of the same round.
    """

    folder: Path
    tasks: dict[str, int]
    left_out: Counter[str]
    others: dict[str, int] = field(default_factory=dict)
    in_one_round: int = 0


def task_file(folder: Path, annotator: str, suffix: str = ".jsonl") -> Path:
    """The file of somebody's tasks: JSON lines, a spreadsheet (.xlsx) or a page (.html)."""
    return folder / f"tasks-{annotator}{suffix}"


def export(
    home: Path,
    settings: Settings,
    name: str,
    people: Sequence[str],
    options: ExportOptions = ExportOptions(),
    out: Path | None = None,
) -> Exported:
    """Writes the tasks of `people` that have no label yet, into `out`, a new or empty folder; None: one in the home.

    Of cer, where fewer than two are named, those who take part already are asked about new candidates as well.

    The folder appears whole, after the rows of `review_tasks` are written. Raises UnknownName for the kind,
    RequestError for people, options or a folder that cannot be, UnreadableFile for a file that is none, NoVersion where
    there is nothing to judge, Busy where another process makes tables.
    """
    kind = require_kind(name)
    _require(kind, options)
    now = dt.datetime.now(dt.UTC)
    batch = f"{kind}-{now:%Y%m%dT%H%M%S%f}"
    folder = out.resolve() if out else Home(home).review / batch
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError("the folder is not empty", where=folder, hint="name a new one: --out FOLDER")
    store = Store(Home(home).data)
    with alone(home):
        annotators = enrol(home, people)
        key = author_key(home)
        assert key is not None  # enrolling gives pseudonyms by it
        chosen, refused = (
            (None, []) if options.questions is None else keep_questions(home, kind, options.questions, store)
        )
        items, lost = items_of(kind, home, store)
        by_id = {item.item_id: item for item in items}
        if options.gold is not None:
            keep_known(home, kind, options.gold, by_id)
        known = [one for one in known_answers(home, kind) if one.item_id in by_id]
        suggested = _suggestions(options.suggestions, kind, by_id)
        standing = _standing(sent_rows(store).filter(kind=kind), by_id)
        earlier = [_assigned(row) for row in standing]
        asked = _to_judge(items, known, chosen, options.size or _size(kind), settings.seed)
        new = _rule(store, kind, options, asked, annotators, settings.seed)(earlier)
        new += _known_of(known, annotators, [*earlier, *new], settings.seed) if not options.third else []
        rows = [task_row(by_id[one.item_id], one, key, batch, now, suggested.get(one.item_id)) for one in new]
        answered = _answered(store, kind)
        listed: dict[str, list[Row]] = {annotator: [] for annotator in annotators}
        for row in (*standing, *rows):
            if row["annotator"] in listed and row["task_id"] not in answered and _is_of(row, options, asked):
                listed[row["annotator"]].append(row)
        tasks = {person: [task_of(row, by_id[row["item_id"]]) for row in theirs] for person, theirs in listed.items()}
        first = {row["task_id"] for row in (*standing, *rows) if row["role"] == "calibration"}
        forms: list[Form] = [
            write for wanted, write in ((options.sheet, write_sheet), (options.page, write_page)) if wanted
        ]
        _publish(folder, tasks, first, forms, lambda: _note(store, rows))
    others = Counter(row["annotator"] for row in rows if row["annotator"] not in listed)
    counts = {one: len(theirs) for one, theirs in tasks.items()}
    reasons = Counter(one.reason for one in (*refused, *lost))
    return Exported(folder, counts, reasons, dict(others), in_one_round(new, earlier))


def sent_tasks(home: Path, name: str, *, answered: bool = False) -> list[Task]:
    """The tasks of a kind that went out, with their contents and orders, of the items as they are today: for those who
    hand them on, or read what comes back in another form. Those that have a label are there if `answered`.

    Raises UnknownName for the kind, and NoVersion where there is nothing to judge.
    """
    kind, store = require_kind(name), Store(Home(home).data)
    done = set() if answered else _answered(store, kind)
    items = {item.item_id: item for item in items_of(kind, home, store)[0]}
    return [task for task in shown_tasks(store, kind, items) if task.task_id not in done]


def shown_tasks(store: Store, kind: Kind, items: Mapping[str, Item]) -> list[Task]:
    """The tasks of a kind that went out about `items` as they are."""
    rows = _standing(sent_rows(store).filter(kind=kind), items)
    return [task_of(row, items[row["item_id"]]) for row in rows]


def sent_rows(store: Store) -> pl.DataFrame:
    """The rows of `review_tasks`."""
    return store.read(TABLE).collect() if store.current(TABLE) else ReviewTasks.create_empty()


def withdraw(home: Path, name: str, people: Sequence[str]) -> int:
    """Takes back the tasks of `people` that have no label, so that the next export gives them to others; how many.

    Raises UnknownName for the kind and for who was never asked, Busy where another process makes tables.
    """
    kind, store = require_kind(name), Store(Home(home).data)
    with alone(home):
        annotators = require_enrolled(home, people)
        rows = sent_rows(store)
        theirs = (pl.col("kind") == kind) & pl.col("annotator").is_in(annotators)
        left = rows.filter(~(theirs & ~pl.col("task_id").is_in(list(_answered(store, kind)))))
        if left.height < rows.height:
            store.write(TABLE, left)
        return rows.height - left.height


def _require(kind: Kind, options: ExportOptions) -> None:
    for cannot, what, option in (
        (
            options.questions is not None and kind not in ("rank", "compare"),
            "takes its items from the tables",
            "questions",
        ),
        (options.third and kind != "cer", "is adjudicated by nobody", "third"),
        (options.each != 1 and kind != "coe", "says itself how many people judge an item", "each"),
    ):
        if cannot:
            raise RequestError(f"{kind} {what}", hint=f"leave out --{option}")


def _suggestions(path: Path | None, kind: Kind, items: Mapping[str, Item]) -> dict[str, Suggestion]:
    return {} if path is None else {one.item_id: one for one in read_answers(path, Suggestion, kind, items)}


def _to_judge(
    items: Iterable[Item], known: Iterable[Known], chosen: Iterable[str] | None, size: int | None, seed: int
) -> dict[str, Item]:
    """What counts: nobody votes on what is known."""
    aside = {one.item_id for one in known}
    wanted = None if chosen is None else set(chosen)
    left = (item for item in items if item.item_id not in aside and (wanted is None or item.item_id in wanted))
    return {one.item_id: one for one in drawn(left, size, seed)}


def _size(kind: Kind) -> int | None:
    return REVIEWED_CHAINS if kind == "coe" else None


def _rule(
    store: Store, kind: Kind, options: ExportOptions, items: Mapping[str, Item], people: Sequence[str], seed: int
) -> Rule:
    """Who is asked about these items."""
    if kind in ("rank", "compare"):
        return lambda earlier: assign_all(items, people, seed=seed, earlier=earlier)
    if kind == "coe":
        return lambda earlier: assign(items, people, seed=seed, earlier=earlier, votes=options.each)
    if options.third:
        return partial(_third, store, items, people, seed)

    def two(earlier: Sequence[Assigned]) -> list[Assigned]:
        taking_part = {one.annotator for one in earlier if one.role == "annotator"} if len(people) < VOTES else set()
        return assign(items, {*people, *taking_part}, seed=seed, earlier=earlier)

    return two


def _third(
    store: Store, items: Mapping[str, Item], people: Sequence[str], seed: int, earlier: Sequence[Assigned]
) -> list[Assigned]:
    votes = store.read("cer_votes").collect() if store.current("cer_votes") else CerVotes.create_empty()
    waiting = consensus(votes, {item_id: item.hash for item_id, item in items.items()}).waiting
    voters = {one.item_id: one.voters for one in waiting if one.vote == "third"}
    return assign_third(voters, people, seed=seed, earlier=earlier)


def _known_of(known: Sequence[Known], people: Sequence[str], asked: Sequence[Assigned], seed: int) -> list[Assigned]:
    """The items with a known answer for those who have anything to do."""
    busy = {one.annotator for one in asked if one.role in COUNTING}
    calibration, gold = ([one.item_id for one in known if one.calibration is first] for first in (True, False))
    return assign_known(calibration, gold, [one for one in people if one in busy], asked, seed=seed)


def _is_of(row: Row, options: ExportOptions, items: Mapping[str, Item]) -> bool:
    """Whether a task belongs to what this export gives out."""
    if options.third:
        return bool(row["role"] == "adjudicator")
    return row["role"] in ("gold", "calibration") or (row["role"] == "annotator" and row["item_id"] in items)


def _answered(store: Store, kind: Kind) -> set[str]:
    table = TABLE_NAME[kind]
    return set(store.read(table).select("task_id").collect()["task_id"]) if store.current(table) else set()


def _assigned(row: Row) -> Assigned:
    return Assigned(row["item_id"], row["annotator"], row["role"])


def _standing(tasks: pl.DataFrame, items: Mapping[str, Item]) -> list[Row]:
    """What went out before about these items as they are today."""
    return [
        row
        for row in tasks.iter_rows(named=True)
        if row["item_id"] in items and items[row["item_id"]].hash == row["item"]
    ]


def _note(store: Store, rows: list[Row]) -> None:
    """Adds tasks that are not there; one that went out before stays as it was."""
    before = sent_rows(store)
    every = ReviewTasks.validate(pl.DataFrame(rows, schema=ReviewTasks.polars_schema()))
    new = every.join(before, on="task_id", how="anti")
    if new.height:
        store.write(TABLE, pl.concat([before, new]))


def _publish(
    folder: Path, tasks: dict[str, list[Task]], first: set[str], forms: Sequence[Form], note: Callable[[], None]
) -> None:
    """Writes the files, notes the tasks, and only then gives the folder its name: a killed export leaves none.

    `order` stays at home: it tells which of two replies is a person's.
    """
    scratch = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(scratch, ignore_errors=True)  # of a killed one
    for annotator, listed in tasks.items():
        calibration = [task for task in listed if task.task_id in first]
        in_order = [*calibration, *(task for task in listed if task.task_id not in first)]
        lines = "".join(f"{task.model_dump_json(exclude={'order'})}\n" for task in in_order)
        write_whole(task_file(scratch, annotator), lines.encode())
        for write in forms if listed else ():
            write(listed, task_file(scratch, annotator, SUFFIXES[write]), calibration)
    note()
    if folder.exists():
        folder.rmdir()
    scratch.rename(folder)
    sync(folder.parent)
