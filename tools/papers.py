"""The page of what the papers ask for: `python -m tools.papers`, made from `tools/papers.toml`."""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

PAPERS = {"M": "MindChat-R0", "E": "Empathy-R1", "C": "COMPEER"}

_SOURCE = Path(__file__).with_suffix(".toml")
_HEAD = """\
# What the papers ask for

Every requirement of the three papers, where it is implemented, the tests that hold it, and what differs with the
reason. Made by `python -m tools.papers` from `tools/papers.toml`; a test compares, looks each place and each test up,
and misses no numbered equation or table and nothing that a docstring cites. What the papers leave open is marked so,
with what we decided. The numbers of the training set-ups stand one by one in [recipes](recipes.md).
"""
_COLUMNS = """\
| | in the paper | what it asks | where | held by | what differs, or was left open |
|---|---|---|---|---|---|
"""


class Requirement(BaseModel):
    """What a paper asks for.

    `at` is the place in the paper. `code` names places as `path::name` (a module's path without a name: all of it);
    `tests` as `path::test`, below `tests/`. `open` is what the paper does not say, and what we decided; `differs` what
    is otherwise here, and why. What has not been built has a `state` and no place yet.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    at: str
    asks: str
    code: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    open: str = ""
    differs: str = ""
    state: Literal["done", "in part", "not yet"] = "done"

    @model_validator(mode="after")
    def _has_a_place_and_a_test(self) -> "Requirement":
        if self.state == "done" and not (self.code and self.tests):
            raise ValueError(f"{self.at}: what is done has a place and a test")
        if self.state != "done" and not self.differs:
            raise ValueError(f"{self.at}: what is not done says what is missing")
        return self


def requirements() -> dict[str, list[Requirement]]:
    """The requirements by paper, in the order of the file."""
    written = tomllib.loads(_SOURCE.read_text(encoding="utf-8"))
    return {paper: [Requirement(**one) for one in written[paper]] for paper in PAPERS}


def listing() -> str:
    """The page, as Markdown."""
    return _HEAD + "".join(_section(paper, asked) for paper, asked in requirements().items())


def _section(paper: str, asked: list[Requirement]) -> str:
    done = sum(one.state == "done" for one in asked)
    rows = "\n".join("| " + " | ".join(_cells(f"{paper}{number}", one)) + " |" for number, one in enumerate(asked, 1))
    head = f"\n## {paper}: {PAPERS[paper]}\n\n{len(asked)} requirements, {done} of them done.\n\n"
    return f"{head}{_COLUMNS}{rows}\n"


def _cells(number: str, one: Requirement) -> Iterator[str]:
    notes = (f"*{one.state}*" if one.state != "done" else "", f"open: {one.open}" if one.open else "", one.differs)
    yield number
    yield one.at
    yield one.asks
    yield "<br>".join(f"`{_short(place)}`" for place in one.code)
    yield "<br>".join(f"`{test}`" for test in one.tests)
    yield ". ".join(filter(None, notes))


def _short(place: str) -> str:
    return place.removeprefix("pipelines/")


if __name__ == "__main__":
    sys.stdout.write(listing())
