"""What kind of value a setting has, so that one of another kind is refused before anything is made of it."""

import math
from typing import Any, Literal

Kind = Literal["true or false", "a whole number", "a number"]
GIVEN = "--set, or [settings] of an experiment"  # where settings of a trainer's are given


def kind(value: Any) -> Kind | None:
    """The kind of a value; None for all that is neither a number nor true or false. YAML 1.1 reads 1e-6 as a text."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int):
        return "a whole number"
    if isinstance(value, float):
        return "a number"
    if isinstance(value, str):
        return _written(value)
    return None


def fits(value: Any, wanted: Kind) -> bool:
    """Whether a value can stand where one of a kind is wanted: a whole number is a number."""
    found = kind(value)
    return found == wanted or (wanted == "a number" and found == "a whole number")


def finite(value: Any) -> bool:
    """Whether one can train with a value, or with each of a list: not with NaN and what is infinite, written or not."""
    if isinstance(value, list):
        return all(map(finite, value))
    return kind(value) != "a number" or math.isfinite(float(value))


def _written(text: str) -> Kind | None:
    for read, told in ((int, "a whole number"), (float, "a number")):
        try:
            read(text)
        except ValueError:
            continue
        return told  # type: ignore[return-value]
    return None
