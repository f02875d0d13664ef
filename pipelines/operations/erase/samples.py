"""Rows that Dagster shows in its events: those of what is gone go whole.

What lies beside an id in such a row, a number of the source's own or the moment of posting, leads to somebody as well,
and says nothing of itself by which it could be told from any other number or moment.
"""

import re
from typing import Any

from pipelines.operations.erase.lineage import Gone
from schemas.ids import source_row_id

_RECORD = "TableRecord"  # as Dagster writes them
_SIDE_BY_SIDE = ("sample", "sample_fields")  # texts of some rows, and all else of the same rows in the same order
_MASK = re.compile(r"erased:[0-9a-f]{16}")  # `pipelines.store.suppression`; an earlier version left what lay beside it


def without_gone(value: Any, gone: Gone) -> Any:
    """A JSON value without the records of tables in it that show a row which is gone, or was made from one.

    Versions before wrote more of a row, so a record is known by any of its cells.
    """
    if isinstance(value, list):
        return [without_gone(one, gone) for one in _without_pairs(value, gone) if not _is_gone(one, gone)]
    if isinstance(value, dict):
        return {name: without_gone(one, gone) for name, one in value.items()}
    return value


def _is_gone(value: Any, gone: Gone) -> bool:
    if not isinstance(value, dict) or value.get("__class__") != _RECORD or not isinstance(value.get("data"), dict):
        return False
    cells = value["data"]
    told = [cell for cell in cells.values() if isinstance(cell, str)]
    if {"source", "source_id"} <= cells.keys():
        told.append(source_row_id(cells["source"], cells["source_id"]))
    return any(cell in gone or _MASK.fullmatch(cell) for cell in told)


def _without_pairs(entries: list[Any], gone: Gone) -> list[Any]:
    """Metadata whose tables stand side by side lose the same rows: only one of them may name a row."""
    pair = [one["entry_data"] for one in entries if _is_of_pair(one)]
    if len(pair) != len(_SIDE_BY_SIDE) or len({len(table["records"]) for table in pair}) > 1:
        return entries
    lost = {place for table in pair for place, record in enumerate(table["records"]) if _is_gone(record, gone)}
    return [_without(one, lost) if _is_of_pair(one) else one for one in entries]


def _is_of_pair(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("label") in _SIDE_BY_SIDE
        and isinstance(entry.get("entry_data"), dict)
        and isinstance(entry["entry_data"].get("records"), list)
    )


def _without(entry: dict[str, Any], lost: set[int]) -> dict[str, Any]:
    left = [record for place, record in enumerate(entry["entry_data"]["records"]) if place not in lost]
    return {**entry, "entry_data": {**entry["entry_data"], "records": left}}
