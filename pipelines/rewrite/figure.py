"""Figures: a value in a unit, as it is compared and as it was written."""

import re
from typing import NamedTuple

CLOCK = re.compile(r"(?<![0-9:])([0-9]{1,2}):([0-5][0-9])(?![0-9:])")


class Figure(NamedTuple):
    """A figure: its value in its unit (months, days, minutes …), the unit, and the value as it was written."""

    value: str
    unit: str
    written: str


def figure(value: float, unit: str = "", size: float = 1) -> Figure:
    """The figure of `value` times `size` of a unit."""
    return Figure(shown(value * size), unit, shown(value))


def span(low: float, high: float, unit: str, size: float) -> Figure:
    """The figure of a range: 三四年, 3-4年."""
    return Figure(f"{shown(low * size)}-{shown(high * size)}", unit, f"{shown(low)}-{shown(high)}")


def clock(match: re.Match[str]) -> Figure:
    """The time of day of a match of CLOCK, in hours."""
    return figure(int(match[1]) + int(match[2]) / 60, "clock")


def blanked(pattern: re.Pattern[str], text: str, mark: str) -> str:
    """`text` with `mark` in place of every character that `pattern` matches, so that all others keep their places."""
    return pattern.sub(lambda match: mark * len(match[0]), text)


def shown(value: float) -> str:
    """A value as it is compared: two of up to fifteen digits that differ never read the same."""
    return f"{value:.15g}"
