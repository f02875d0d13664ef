"""Texts that nobody has a schema for, rid of traces: events of Dagster, logs, manifests of releases."""

import json
from typing import Any

import numpy as np

from pipelines.operations.erase.lineage import Gone, Mask
from pipelines.operations.erase.samples import without_gone
from pipelines.operations.erase.traces import LENGTH, Runs

ERASED = "[erased]"


class Scrub:
    """Puts ERASED in the place of every line that holds a trace, or a piece of one that goes on in the next, and a mask
    in that of every id that is gone.

    JSON stays JSON: of a line within one of its strings, or of its names, no more goes than that line; of a table that
    Dagster shows, the rows of what is gone.
    """

    def __init__(self, runs: Runs, gone: Gone, mask: Mask) -> None:
        self._runs, self._gone, self._mask = runs, gone, mask

    def __call__(self, text: str) -> str:
        """The text without traces; the very same where it holds none."""
        if text.lstrip()[:1] in {"{", "["}:
            try:
                value = json.loads(text)
            except ValueError:
                return self._lines(text)
            clean = self._value(without_gone(value, self._gone))
            return text if clean == value else json.dumps(clean)
        return self._lines(text)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self._value(one) for one in value]
        if isinstance(value, dict):
            return {self._lines(name): self._value(one) for name, one in value.items()}
        return value

    def _lines(self, text: str) -> str:
        lines = text.split("\n")
        if len(found := self._runs.found(text)):
            ends = np.cumsum([len(line) + 1 for line in lines])
            begins = found + [text[place] == "\n" for place in found]  # such a one is the end of a line, and none of it
            first, last = np.searchsorted(ends, [begins, found + LENGTH - 1], side="right")
            for line in {line for a, b in zip(first, last, strict=True) for line in range(a, b + 1)}:
                lines[line] = ERASED if lines[line] else ""
        return "\n".join(line if line == ERASED else self._gone.masked(line, self._mask) for line in lines)
