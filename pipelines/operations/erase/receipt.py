"""What an erasure leaves: counts, places and dates; no text, and no id in the clear (`<home>/erasures/*.json`)."""

import datetime as dt
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from pydantic.dataclasses import dataclass

from pipelines.core.files import write_whole
from pipelines.core.home import Home


@dataclass(frozen=True)
class Lost:
    """What a version of a table, or a release, has lost: rows, rows that it had dropped, parts of other rows."""

    place: str
    rows: int
    dropped: int
    changed: int


@dataclass(frozen=True)
class Published:
    """What of it stands on the Hub, where nobody but its owner can take it away, and how."""

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

    `rows` are codes (`pipelines.store.suppression`) of what was named; `calls` of models, `events` of Dagster
    (cells and files), `crawled` (lines and files) and `runs` of training (files) are what was
    deleted or masked; what was done before somebody killed it may be missing from the latter three.
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
    index: bool  # the near-duplicate index of an earlier version was there, and is gone as a whole
    published: list[Published]
    at_hosts: list[AtHost]
    runs: int = 0
    learnt: list[str] = []  # runs that learnt of a release that held it: nothing takes it out of their models
    elsewhere: list[str] = []  # files in the home that are none of ours, and still hold a trace


def keep(home: Path, receipt: Receipt) -> Path:
    """Writes it down; where."""
    path = Home(home).erasures / f"{receipt.erasure}.json"
    write_whole(path, (receipt.model_dump_json(indent=1) + "\n").encode())
    return path
