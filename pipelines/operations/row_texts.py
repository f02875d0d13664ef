"""Rows and their texts, for people to read: what a post, an answer or a dialogue says, or what a model made of one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from pipelines.store.store import Store
from schemas.table import LlmMade
from schemas.tables import TABLES

# Where what somebody wrote stands as it came, by the key of its rows.
SOURCES = {"post_id": ("raw_posts", "imported_posts"), "dialogue_id": ("imported_dialogues",)}

# Columns that say nothing of what a model decided: who it was, what it thought before, what goes on from the row, and
# hashes of what was read.
_OTHERS = {*LlmMade.column_names(), "reasoning", "group_id", "lang", "source", "judged"}


def rows_by_id(store: Store, table: str, key: str, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of all current partitions of a table whose `key` is one of these."""
    for version in store.current(table):
        rows = store.read(table, version.version, version.partition).filter(pl.col(key).is_in(ids))
        yield from rows.collect().iter_rows(named=True)


def raw_rows(store: Store, key: str, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Posts (`post_id`) or dialogues (`dialogue_id`) as they came, by their id."""
    return {row[key]: row for table in SOURCES[key] for row in rows_by_id(store, table, key, ids)}


def text_of(row: Mapping[str, Any], part: str | None = None) -> str | None:
    """A post's title and description, an answer's text (`part` is its id), a dialogue's turns, a line each; None for a
    row that is none of these.
    """
    for answer in row.get("answers") or []:
        if answer["answer_id"] == part:
            return str(answer["text"])
    if row.get("turns") is not None:
        return "\n".join(f"{turn['role']}: {turn['text']}" for turn in row["turns"])
    if "description" in row and "title" in row:
        return "\n".join(filter(None, (row["title"], row["description"])))
    return None


def written_of(table: str, row: Mapping[str, Any]) -> str | None:
    """What a model decided and wrote, a column a line; None for a table that no model makes."""
    if not issubclass(TABLES[table], LlmMade):
        return None
    others = {*_OTHERS, *TABLES[table].key()}
    values = {name: row[name] for name in TABLES[table].column_names() if name not in others and row[name] is not None}
    lines = [f"{line['who']}: {line['text']}" for line in values.pop("lines", [])]
    for name, value in values.items():
        if not isinstance(value, list | dict):
            lines.append(f"{name}: {value:.2f}" if isinstance(value, float) else f"{name}: {value}")
    return "\n".join(lines) or None
