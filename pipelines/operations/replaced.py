"""What cleaning took for personal data, in its context: for the owner of a home alone, for it reads the raw texts."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from pipelines.errors import RequestError
from pipelines.operations.row_texts import raw_rows
from pipelines.settings import Settings
from pipelines.store.store import Store
from pipelines.text.pii.redaction import find

_KEYS = {"clean_posts": "post_id", "clean_dialogues": "dialogue_id"}
_AROUND = 15  # characters


def replaced(store: Store, table: str, n: int, settings: Settings) -> list[dict[str, Any]]:
    """What stands for personal data in the first `n` rows of a cleaned table that hold any, as the rules read today.

    Returns dicts of `row_id`, `place` (title, description, situation, answer or turn with its number), `kind`, `text`
    and what stands `before` and `behind`, in the order of the rows.

    Raises RequestError for a table that is not a cleaned one.
    """
    if table not in _KEYS:
        raise RequestError(f"{table} replaces nothing", where="--changed", hint=f"tables that do: {', '.join(_KEYS)}")
    key = _KEYS[table]
    ids = store.read(table).filter(pl.col("pii").list.len() > 0).select(key).head(n).collect()[key].to_list()
    rows = raw_rows(store, key, ids)
    cells = [(row_id, *cell) for row_id in ids if row_id in rows for cell in _cells(rows[row_id])]
    if not cells:
        return []
    row_ids, places, texts = (list(column) for column in zip(*cells, strict=True))
    found = find(
        pl.Series(texts, dtype=pl.String),
        pl.Series(row_ids),
        names=settings.cleaning.names,
        ner=settings.cleaning.ner,
    )
    return [
        {"row_id": row_ids[row], "place": places[row], "kind": kind, **_in_context(texts[row], start, end)}
        for row, start, end, kind, _ in found.iter_rows()
    ]


def _cells(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The texts of a raw post or dialogue, each with its place."""
    for name in ("title", "description", "situation"):
        if row.get(name):
            yield name, row[name]
    for name, of in (("answer", "answers"), ("turn", "turns")):
        for number, part in enumerate(row.get(of) or [], 1):
            yield f"{name} {number}", part["text"]


def _in_context(text: str, start: int, end: int) -> dict[str, str]:
    data = text.encode()
    before, behind = data[:start].decode(), data[end:].decode()
    return {"before": before[-_AROUND:], "text": data[start:end].decode(), "behind": behind[:_AROUND]}
