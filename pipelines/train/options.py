"""The options of the contrastive training (`pipelines.train.contrastive`), and what each may be."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from pipelines.errors import RequestError, UnknownName
from pipelines.train.kinds import GIVEN, Kind, fits

DEVICES = ("auto", "cpu", "cuda")


class Option(NamedTuple):
    """A number, and where it may lie: `least` and `most` among it. `default` of None: what the encoder has, or all."""

    default: float | None
    least: float
    most: float = math.inf

    @property
    def whole(self) -> bool:
        """Whether it is a whole number."""
        return not isinstance(self.default, float)

    def read(self, value: Any) -> int | float:
        """A value, or the text of one, as a number. Raises ValueError for what it may not be."""
        wanted: Kind = "a whole number" if self.whole else "a number"
        number: float = (int if self.whole else float)(value) if fits(value, wanted) else math.nan
        if not self.least <= number <= self.most:
            between = f"from {self.least:g} to {self.most:g}" if self.most < math.inf else f"of {self.least:g} or more"
            raise ValueError(f"{wanted} {between} is asked for, and not {value!r}")
        return number


# Defaults are ours: E gives none of them (papers.md §7). A cosine goes from −1 to 1, and two are 2 apart at most.
OPTIONS = {
    "epochs": Option(3, 1),
    "batch": Option(16, 2),
    "rate": Option(2e-5, 1e-12),
    "margin": Option(0.2, 0.0, 2.0),
    "seed": Option(0, 0),
    "max_length": Option(None, 8),
    "max_rows": Option(None, 2),
    "save_every": Option(100, 1),
}
_FILES = ("start", "train", "validation", "out")


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a run, the defaults of those that are not given among them.

    Raises UnknownName for one that there is not, and RequestError for a value that it may not have.
    """
    for name in given:
        if name not in (*OPTIONS, *_FILES, "device"):
            raise UnknownName("option of the contrastive training", name, (*OPTIONS, "start", "device"))
    device = given.get("device", DEVICES[0])
    if device not in DEVICES:
        raise UnknownName("device", str(device), DEVICES)
    found = {name: given[name] for name in _FILES if name in given} | {"device": device}
    for name, option in OPTIONS.items():
        value = given.get(name, option.default)
        if value is None and option.default is None:
            continue
        try:
            found[name] = option.read(value)
        except ValueError as error:
            raise RequestError(f"{name}: {error}", where=f"{name}={value}", hint=f"look at {GIVEN}") from error
    return found
