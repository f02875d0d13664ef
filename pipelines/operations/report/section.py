"""What a part of the report is made of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Reasons(tuple[tuple[str, int], ...]):
    """Why rows were dropped: each reason with how many."""


class Table(NamedTuple):
    """Figures: `title` may be empty."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


class Text(NamedTuple):
    """A text in pieces, each with its mark: `del`, `ins`, or none; `of`: whose it is, where a row has several."""

    label: str
    pieces: list[tuple[str, str]]
    of: str = ""


class Sample(NamedTuple):
    """A row to look at, the command that tells its life, and what was done with it on the way."""

    title: str
    texts: list[Text]
    command: str
    steps: Table | None = None


@dataclass(frozen=True)
class Section:
    """A part of the page, by the key of its words, with the command that shows more; `gongqing report --section KEY`
    reprints it.
    """

    key: str
    command: str = ""
    tables: list[Table] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    problem: str = ""  # why it could not be made

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.problem and not self.samples and not any(table.rows for table in self.tables)
