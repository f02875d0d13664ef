"""Labels come back: all labels of the files become rows, or none does and everything wrong with them is named."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipelines.core.home import Home
from pipelines.errors import LabelsRefused, NoVersion, UnreadableFile
from pipelines.operations.review.exporting import sent_tasks
from pipelines.operations.review.judged import TABLE, items_of, require_kind
from pipelines.review.consensus import consensus
from pipelines.review.contract import Kind
from pipelines.review.importing import TABLE_NAME, TABLE_OF, read_labels
from pipelines.review.items import Item
from pipelines.review.sheets import read_sheet
from pipelines.store.store import Store, Version
from pipelines.store.suppression import alone
from schemas.annotations import CerLabels
from schemas.dropped import dropped

_KEY = ("dialogue_id", "round", "candidate")


@dataclass(frozen=True, slots=True)
class Imported:
    """How many labels are new and how many were there; the versions that were written."""

    new: int
    known: int
    versions: list[Version]


def import_labels(home: Path, name: str, files: Sequence[Path]) -> Imported:
    """Takes labels into the kind's table, and what the votes now agree on into `cer_labels`. Files are JSON lines, or
    spreadsheets (.xlsx) that went out.

    Raises LabelsRefused with all that is wrong: then nothing is written; UnknownName for the kind, UnreadableFile for a
    file that is no text or has no label, NoVersion where no task ever went out, Busy where another process makes
    tables.
    """
    kind = require_kind(name)
    texts = {str(path): _of_sheet(home, kind, path) if path.suffix == ".xlsx" else _text(path) for path in files}
    return import_texts(home, kind, texts)


def import_texts(home: Path, kind: Kind, texts: Mapping[str, str]) -> Imported:
    """The same, of texts of JSON lines by the names of where they come from."""
    store, table = Store(Home(home).data), TABLE_NAME[kind]
    with alone(home):
        if not store.current(TABLE):
            raise NoVersion("no task ever went out from this home", where=home, hint="gongqing review export KIND")
        items = {item.item_id: item for item in items_of(kind, home, store)[0]}
        before = store.read(table).collect() if store.current(table) else TABLE_OF[kind].create_empty()
        labels = read_labels(kind, texts, store.read(TABLE).collect(), items, before)
        if labels.refusals:
            raise LabelsRefused(labels.refusals)
        versions = []
        if labels.rows.height:
            versions.append(store.write(table, pl.concat([before, labels.rows])))
        if kind == "cer" and store.current(table):  # also where a killed import has written the votes alone
            versions += write_consensus(store, items)
    return Imported(labels.rows.height, labels.known, versions)


def write_consensus(store: Store, items: Mapping[str, Item]) -> list[Version]:
    """Puts what the votes agree on into `cer_labels`; labels of what nobody voted on here stay. The new version, or
    none where it is the current one already.

    A vote counts while its candidate, one of `items`, is what was labelled.
    """
    votes = store.read("cer_votes").collect()
    result = consensus(votes, {item_id: item.hash for item_id, item in items.items()})
    before = store.read("cer_labels").collect() if store.current("cer_labels") else CerLabels.create_empty()
    others = before.join(votes, on=_KEY, how="anti")
    current = {version.version for version in store.current("cer_labels")}
    written = store.write("cer_labels", pl.concat([others, result.labels]), dropped("cer_labels", result.lost))
    return [] if written.version in current else [written]


def _of_sheet(home: Path, kind: Kind, path: Path) -> str:
    """The labels of a spreadsheet, as JSON lines. Raises LabelsRefused and UnreadableFile."""
    labels, refusals = read_sheet(path, sent_tasks(home, kind, answered=True))
    if refusals:
        raise LabelsRefused([f"{path}, row {one.row}: {one.reason} {one.detail}".rstrip() for one in refusals])
    if not labels:
        raise UnreadableFile("nothing is answered yet", where=path, hint="import it once there are answers")
    return "".join(f"{label.model_dump_json()}\n" for label in labels)


def _text(path: Path) -> str:
    hint = "one label a line, JSON (docs/reviewing.md)"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"the labels cannot be read: {error}", where=path, hint=hint) from error
    if not text.strip():
        raise UnreadableFile("there is no label", where=path, hint=hint)
    return text
