"""Labels come back: all labels of the files become rows, or none does and everything wrong with them is named."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipelines.core.home import Home
from pipelines.errors import LabelsRefused, NoVersion, UnknownName, UnreadableFile
from pipelines.operations.review.judged import TABLE, items_of
from pipelines.review.contract import CONTENTS, Kind
from pipelines.review.importing import TABLE_NAME, TABLE_OF, read_labels
from pipelines.review.items import Item
from pipelines.store.store import Store, Version
from pipelines.store.suppression import alone
from schemas.annotations import CerLabels

# From rows of `cer_votes` to rows of `cer_labels`, drops, and what waits for another vote.
Consensus = Callable[[pl.DataFrame], tuple[pl.DataFrame, pl.DataFrame, object]]
_KEY = ("dialogue_id", "round", "candidate")


@dataclass(frozen=True, slots=True)
class Imported:
    """How many labels are new and how many were there; the versions that were written."""

    new: int
    known: int
    versions: list[Version]


def import_labels(home: Path, kind: Kind, files: Sequence[Path], consensus: Consensus) -> Imported:
    """Takes labels into the kind's table, and what the votes now agree on into `cer_labels`.

    Raises LabelsRefused with all that is wrong: then nothing is written; UnknownName for the kind, UnreadableFile for a
    file that is no text or has no label, NoVersion where no task ever went out, Busy where another process makes
    tables.
    """
    if kind not in CONTENTS:
        raise UnknownName("kind of review", kind, CONTENTS)
    texts = {str(path): _text(path) for path in files}
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
            versions += write_consensus(store, items, consensus)
    return Imported(labels.rows.height, labels.known, versions)


def write_consensus(store: Store, items: dict[str, Item], consensus: Consensus) -> list[Version]:
    """Puts what the votes agree on into `cer_labels`; labels of what nobody voted on here stay. The new version, or
    none where it is the current one already.

    A vote counts while its candidate is what was labelled.
    """
    votes = current_votes(store.read("cer_votes").collect(), items)
    labels, dropped, _ = consensus(votes)
    before = store.read("cer_labels").collect() if store.current("cer_labels") else CerLabels.create_empty()
    others = before.join(votes, on=_KEY, how="anti")
    current = {version.version for version in store.current("cer_labels")}
    written = store.write("cer_labels", pl.concat([others, labels]), dropped)
    return [] if written.version in current else [written]


def current_votes(votes: pl.DataFrame, items: dict[str, Item]) -> pl.DataFrame:
    """The votes on what the candidates are today."""
    item_id = pl.format("{}#{}/{}", *_KEY)
    hashes = pl.DataFrame({"item_id": list(items), "labelled": [item.hash for item in items.values()]})
    return votes.with_columns(item_id=item_id).join(hashes, on=["item_id", "labelled"], how="semi").drop("item_id")


def _text(path: Path) -> str:
    hint = "one label a line, JSON (docs/reviewing.md)"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"the labels cannot be read: {error}", where=path, hint=hint) from error
    if not text.strip():
        raise UnreadableFile("there is no label", where=path, hint=hint)
    return text
