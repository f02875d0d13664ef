"""The strings of a value as JSON and Arrow give it."""

from collections.abc import Iterator
from typing import Any


def strings(value: Any) -> Iterator[str]:
    """Every string of a value, within lists and objects too; the names of an object are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
    elif isinstance(value, dict):
        yield from strings(list(value.values()))
