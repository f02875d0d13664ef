"""Texts without a schema, rid of traces: events of Dagster, logs, manifests of releases."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.core.files import write_whole
from pipelines.operations.erase.rows import ErasedIds, Mask
from pipelines.operations.erase.traces import LENGTH, TextTraces
from schemas.ids import source_row_id

ERASED = "[erased]"
_RECORD = "TableRecord"  # Dagster's class of a row in a table of an event
_PARALLEL = ("sample", "sample_fields")  # texts of some rows, and all else of the same rows in the same order
_MASK = re.compile(r"erased:[0-9a-f]{16}")  # `pipelines.store.suppression`; an earlier version left what lay beside it


class Scrub:
    """Replaces every line that holds a trace, or a part of one that continues in the next line, by ERASED, and every
    erased id by a mask.

    JSON stays JSON: in a string of it, or a name, no more goes than the line; of a table that Dagster shows, the rows.
    """

    def __init__(self, traces: TextTraces, erased: ErasedIds, mask: Mask) -> None:
        self._traces, self._erased, self._mask = traces, erased, mask

    def __call__(self, text: str) -> str:
        """The text without traces; the very same where it holds none."""
        if text.lstrip()[:1] in {"{", "["}:
            try:
                value = json.loads(text)
            except ValueError:
                return self._lines(text)
            clean = self._value(without_erased_records(value, self._erased))
            return text if clean == value else json.dumps(clean)
        return self._lines(text)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {self._lines(name): self._value(item) for name, item in value.items()}
        return value

    def _lines(self, text: str) -> str:
        lines = text.split("\n")
        if len(positions := self._traces.positions(text)):
            ends = np.cumsum([len(line) + 1 for line in lines])
            begins = positions + [text[at] == "\n" for at in positions]  # a line break belongs to no line
            first, last = np.searchsorted(ends, [begins, positions + LENGTH - 1], side="right")
            for line in {line for a, b in zip(first, last, strict=True) for line in range(a, b + 1)}:
                lines[line] = ERASED if lines[line] else ""
        return "\n".join(line if line == ERASED else self._erased.masked(line, self._mask) for line in lines)


def without_erased_records(value: Any, erased: ErasedIds) -> Any:
    """A JSON value without Dagster's table records of rows that are erased, or were made from an erased row.

    A record goes whole: a number at the source or the moment of posting leads to somebody as well, and cannot be told
    from another number by itself. Earlier versions wrote more of a row, so a record is known by any of its cells.
    """
    if isinstance(value, list):
        kept = [item for item in _without_parallel(value, erased) if not _is_erased(item, erased)]
        return [without_erased_records(item, erased) for item in kept]
    if isinstance(value, dict):
        return {name: without_erased_records(item, erased) for name, item in value.items()}
    return value


def _is_erased(value: Any, erased: ErasedIds) -> bool:
    if not isinstance(value, dict) or value.get("__class__") != _RECORD or not isinstance(value.get("data"), dict):
        return False
    cells = value["data"]
    names = [cell for cell in cells.values() if isinstance(cell, str)]
    if {"source", "source_id"} <= cells.keys():
        names.append(source_row_id(cells["source"], cells["source_id"]))
    return any(name in erased or _MASK.fullmatch(name) for name in names)


def _without_parallel(entries: list[Any], erased: ErasedIds) -> list[Any]:
    """Metadata whose two parallel tables lose the same rows: only one of them may name a row."""
    tables = [entry["entry_data"]["records"] for entry in entries if _is_parallel(entry)]
    if len(tables) != len(_PARALLEL) or len(set(map(len, tables))) > 1:
        return entries
    lost = {at for records in tables for at, record in enumerate(records) if _is_erased(record, erased)}
    return [_without_records(entry, lost) if _is_parallel(entry) else entry for entry in entries]


def _is_parallel(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("label") in _PARALLEL
        and isinstance(entry.get("entry_data"), dict)
        and isinstance(entry["entry_data"].get("records"), list)
    )


def _without_records(entry: dict[str, Any], lost: set[int]) -> dict[str, Any]:
    left = [record for at, record in enumerate(entry["entry_data"]["records"]) if at not in lost]
    return {**entry, "entry_data": {**entry["entry_data"], "records": left}}


def scrub_file(path: Path, scrub: Scrub) -> bool:
    """Removes traces from a text file; whether it had any. Other bytes stay as they are."""
    before = path.read_bytes().decode("utf-8", "surrogateescape")
    after = scrub(before)
    if after != before:
        rewrite(path, after.encode("utf-8", "surrogateescape"))
    return after != before


def rewrite(path: Path, content: bytes) -> None:
    """Replaces a file at once; it keeps its mode."""
    mode = path.stat().st_mode
    write_whole(path, content)
    path.chmod(mode)
