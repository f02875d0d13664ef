"""What an erasure writes down: its plan before anything is erased, its receipt at the end.

    <home>/erasures/<erasure>.plan       ids and codes, no text: `Plan`
    <home>/erasures/<erasure>.runs       hashes of n-grams, whose base is in the plan (`traces`)
    <home>/erasures/<erasure>.json       counts, places and dates; no text, and no id in the clear: `Receipt`

With the first two another process finishes what was killed; they are removed when the erasure is over.
"""

import datetime as dt
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.dataclasses import dataclass

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.errors import StoreError
from pipelines.operations.erase.rows import ErasedIds, Mask, RowFilter
from pipelines.operations.erase.traces import TextTraces
from pipelines.store.suppression import PLANS


class Plan(BaseModel):
    """Ids of rows that go, and where they are."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    erasure: str
    began: dt.datetime
    asked: dict[str, int]  # rows, authors, files that were named
    gone: list[str]  # addresses of posts among them
    namesakes: list[str]  # `rows.ErasedIds`
    quoting: dict[str, list[str]]  # rows by table and key that go for what they quote
    links: list[str]  # group keys in `splits`
    touched: list[str]  # names of places
    forgotten: list[str]  # keys of calls in the ledger
    kept_out: list[str]  # ids and authors for the suppression list
    wordings: list[str] = []  # codes of texts for the suppression list
    taken_down: list[str]  # posts of sites, for the crawler's own list
    base: int

    def row_filter(self, mask: Mask) -> RowFilter:
        """What decides which rows of a table go."""
        quoting = {table: set(keys) for table, keys in self.quoting.items()}
        return RowFilter(ErasedIds(self.gone, self.namesakes), mask, quoting, set(self.links))


@dataclass(frozen=True)
class Lost:
    """What a version of a table, or a release, has lost: rows, rows that it had dropped, parts of other rows."""

    place: str
    rows: int
    dropped: int
    changed: int


@dataclass(frozen=True)
class Published:
    """What is on the Hub, where only its owner can remove it, and how."""

    release: str
    repo: str
    commit: str
    tag: str
    removal: str


@dataclass(frozen=True)
class AtHost:
    """Files of a batch that a host may still keep."""

    host: str
    batch: str | None
    files: list[str]


class Receipt(BaseModel):
    """One erasure, from its plan to its end.

    `rows` are codes (`pipelines.store.suppression`). `calls` of models, `events` of Dagster, `crawled` lines and files
    and files of `runs` and of `reviews` count what was deleted or masked; after a kill the latter four may lack
    what was done before.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    erasure: str
    began: dt.datetime
    ended: dt.datetime
    asked: dict[str, int]
    rows: list[str]
    lost: list[Lost]
    calls: int
    events: int
    crawled: int
    index: bool  # the near-duplicate index of an earlier version was there and was removed
    published: list[Published]
    at_hosts: list[AtHost]
    runs: int = 0
    reviews: int = 0
    learnt: list[str] = []  # runs that learnt of a release that held it: nothing takes it out of their models
    elsewhere: list[str] = []  # unmanaged files in the home that still hold a trace


def save_plan(home: Path, plan: Plan, traces: TextTraces) -> None:
    """From here on the erasure is begun."""
    values = io.BytesIO()
    np.save(values, traces.unique)
    write_whole(Home(home).erasures / f"{plan.erasure}.runs", values.getvalue())
    write_whole(Home(home).erasures / f"{plan.erasure}.plan", plan.model_dump_json().encode())


def unfinished(home: Path) -> Iterator[tuple[Plan, TextTraces]]:
    """The erasures that were begun, in order. Raises StoreError for a plan that cannot be read."""
    for path in sorted(Home(home).erasures.glob(PLANS)):
        try:
            plan = Plan.model_validate_json(path.read_bytes())
            yield plan, TextTraces(np.load(path.with_suffix(".runs")), plan.base)
        except (ValidationError, ValueError, OSError) as error:
            raise StoreError(
                "the plan of an erasure that was begun cannot be read",
                where=path,
                hint="remove it, and ask for the same erasure again: what is erased already stays so",
            ) from error


def sweep(home: Path) -> None:
    """Removes what a killed process left of a plan that was not begun, or is done."""
    for path in sorted(Home(home).erasures.glob("*")):
        if path.suffix == ".part" or (path.suffix == ".runs" and not path.with_suffix(".plan").exists()):
            path.unlink()


def finish_plan(home: Path, plan: Plan, receipt: Receipt) -> None:
    """Replaces the plan by the receipt: the erasure is over."""
    folder = Home(home).erasures
    write_whole(folder / f"{plan.erasure}.json", (receipt.model_dump_json(indent=1) + "\n").encode())
    for suffix in (".plan", ".runs"):
        (folder / f"{plan.erasure}{suffix}").unlink(missing_ok=True)
