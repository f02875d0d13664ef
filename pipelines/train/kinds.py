"""What kind of value a setting has, so that one of another kind is refused before anything is made of it."""

import contextlib
import math
from typing import Any, Literal

Kind = Literal["true or false", "a whole number", "a number"]
KINDS: dict[type, Kind] = {bool: "true or false", int: "a whole number", float: "a number"}
SETTINGS_PLACE = "--set, or [settings] of an experiment"  # where settings of a trainer are written


def kind_of(value: Any) -> Kind | None:
    """The kind of a value; None for all that is neither a number nor a boolean. YAML 1.1 reads 1e-6 as a text."""
    return KINDS.get(type(_parse(value) if isinstance(value, str) else value))


def fits(value: Any, wanted: Kind) -> bool:
    """Whether a value can stand where one of a kind is wanted: a whole number is a number."""
    kind = kind_of(value)
    return kind == wanted or (wanted == "a number" and kind == "a whole number")


def is_finite(value: Any) -> bool:
    """False for NaN and infinity, as a number, as its text, or within a list."""
    if isinstance(value, list):
        return all(map(is_finite, value))
    return kind_of(value) != "a number" or math.isfinite(float(value))


def _parse(text: str) -> int | float | str:
    for number in (int, float):
        with contextlib.suppress(ValueError):
            return number(text)
    return text
