"""Texts that nobody has a schema for, rid of traces: events of Dagster, logs, manifests of releases."""

import json
from typing import Any

from pipelines.erase.lineage import Gone, Mask
from pipelines.erase.traces import Runs

ERASED = "[erased]"


class Scrub:
    """Puts ERASED in the place of every line that holds a trace, and a mask in that of every id that is gone.

    JSON stays JSON: of a line within one of its strings no more goes than that line.
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
            clean = self._value(value)
            return text if clean == value else json.dumps(clean)
        return self._lines(text)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self._value(one) for one in value]
        if isinstance(value, dict):
            return {name: self._value(one) for name, one in value.items()}
        return value

    def _lines(self, text: str) -> str:
        return "\n".join(
            ERASED if self._runs.traced(line) else self._gone.masked(line, self._mask) for line in text.split("\n")
        )
