"""Labels come back: all labels of the files become rows, or none does and everything wrong with them is named."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from pipelines.core.home import Home
from pipelines.errors import LabelsRefused, NoVersion, RequestError, UnreadableFile
from pipelines.operations.review.exporting import sent_rows, shown_tasks
from pipelines.operations.review.judged import TABLE, items_of, require_kind
from pipelines.review.consensus import KEY, consensus
from pipelines.review.contract import Kind, Label
from pipelines.review.importing import TABLE_NAME, TABLE_OF, Entry, entries_of, read_labels
from pipelines.review.items import Item
from pipelines.review.refusals import Refusal
from pipelines.review.sheets import read_sheet
from pipelines.store.store import Store, Version
from pipelines.store.suppression import alone
from schemas.annotations import CerLabels
from schemas.dropped import dropped


@dataclass(frozen=True, slots=True)
class Imported:
    """How many labels are new, how many of these took the place of an earlier one, and how many were there; the
    versions that were written; what was not taken, and the sheets in which nothing is answered yet.
    """

    new: int
    replaced: int
    known: int
    versions: list[Version]
    refusals: tuple[Refusal, ...] = ()
    empty: tuple[Path, ...] = ()


def import_labels(home: Path, name: str, files: Sequence[Path], *, replacing: bool = False) -> Imported:
    """Takes labels into the kind's table, and what the votes now agree on into `cer_labels`. Files are JSON lines, or
    spreadsheets (.xlsx) that went out. `replacing`: their labels take the place of earlier ones, whenever these were
    given.

    Raises LabelsRefused with all that is wrong: then nothing is written; RequestError for a file that is named twice,
    UnknownName for the kind, UnreadableFile for a file that is no text or has no label, NoVersion where no task ever
    went out, Busy where another process makes tables.
    """
    kind = require_kind(name)
    resolved = [path.resolve() for path in files]
    if twice := next((path for path in resolved if resolved.count(path) > 1), None):
        raise RequestError("the file is named twice", where=twice, hint="name each once")
    with alone(home):
        items = _items(home, kind)
        is_sheet = [path.suffix.lower() == ".xlsx" for path in files]
        shown = shown_tasks(Store(Home(home).data), kind, items) if any(is_sheet) else []
        gone = _gone(home, kind, items) if any(is_sheet) else {}
        entries: list[Entry] = []
        refusals: list[Refusal] = []
        empty = []
        for path, of_sheet in zip(files, is_sheet, strict=True):
            if of_sheet:
                answered, refused = read_sheet(path, shown, gone)
                entries += [Entry(str(path), one.row, one.label.model_dump_json()) for one in answered]
                refusals += refused
                if not answered and not refused:
                    empty.append(path)
            else:
                entries += entries_of(str(path), _text(path))
        if len(empty) == len(files) > 0:
            raise UnreadableFile("nothing is answered yet", where=empty[0], hint="import it once there are answers")
        imported = _take(home, kind, entries, items, refusals, replacing=replacing)
    return replace(imported, empty=tuple(empty))


def import_from_server(home: Path, kind: Kind, labels: Iterable[Label], server: str) -> Imported:
    """The same of what a server holds, which nobody can mend there: what is right is taken, and the rest is listed."""
    with alone(home):
        entries = [Entry(server, number, label.model_dump_json()) for number, label in enumerate(labels, 1)]
        return _take(home, kind, entries, _items(home, kind), None)


def _items(home: Path, kind: Kind) -> dict[str, Item]:
    store = Store(Home(home).data)
    if not store.current(TABLE):
        raise NoVersion("no task ever went out from this home", where=home, hint="gongqing review export KIND")
    return {item.item_id: item for item in items_of(kind, home, store)[0]}


def _gone(home: Path, kind: Kind, items: Mapping[str, Item]) -> dict[str, bool]:
    """The tasks that cannot be shown any more, and whether each has a label."""
    store, table = Store(Home(home).data), TABLE_NAME[kind]
    labelled = set(store.read(table).collect()["task_id"]) if store.current(table) else set()
    return {
        row["task_id"]: row["task_id"] in labelled
        for row in sent_rows(store).filter(kind=kind).iter_rows(named=True)
        if row["item_id"] not in items or items[row["item_id"]].hash != row["item"]
    }


def _take(
    home: Path,
    kind: Kind,
    entries: Iterable[Entry],
    items: Mapping[str, Item],
    refusals: Sequence[Refusal] | None,
    *,
    replacing: bool = False,
) -> Imported:
    """Writes the labels: all or none, with these `refusals`; where that is None, those that are right.

    Raises LabelsRefused.
    """
    store, table = Store(Home(home).data), TABLE_NAME[kind]
    before = store.read(table).collect() if store.current(table) else TABLE_OF[kind].create_empty()
    labels = read_labels(kind, entries, sent_rows(store), items, before, replacing=replacing)
    if refusals is not None and (refused := [*refusals, *labels.refusals]):
        raise LabelsRefused(refused)
    versions = []
    if labels.rows.height:
        left = before.join(labels.rows, on="task_id", how="anti")
        versions.append(store.write(table, pl.concat([left, labels.rows])))
    if kind == "cer" and store.current(table):  # also where a killed import has written the votes alone
        versions += write_consensus(store, items)
    return Imported(labels.rows.height, labels.replaced, labels.known, versions, tuple(labels.refusals))


def write_consensus(store: Store, items: Mapping[str, Item]) -> list[Version]:
    """Puts what the votes agree on into `cer_labels`; labels of what nobody voted on here stay. The new version, or
    none where it is the current one already.

    A vote counts while its candidate, one of `items`, is what was labelled.
    """
    votes = store.read("cer_votes").collect()
    result = consensus(votes, {item_id: item.hash for item_id, item in items.items()})
    before = store.read("cer_labels").collect() if store.current("cer_labels") else CerLabels.create_empty()
    others = before.join(votes, on=KEY, how="anti")
    current = {version.version for version in store.current("cer_labels")}
    written = store.write("cer_labels", pl.concat([others, result.labels]), dropped("cer_labels", result.lost))
    return [] if written.version in current else [written]


def _text(path: Path) -> str:
    hint = "one label a line, JSON (docs/reviewing.md); a sheet as it went out, .xlsx"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UnreadableFile(f"the labels cannot be read: {error.strerror}", where=path, hint=hint) from error
    except UnicodeDecodeError as error:
        raise UnreadableFile("the file is no UTF-8", where=path, hint=hint) from error
    if not any(line.strip().startswith("{") and line.strip().endswith("}") for line in text.splitlines()):
        raise UnreadableFile("there is no label in it", where=path, hint=hint)
    return text
