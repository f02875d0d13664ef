"""Where releases were published: a line of JSON for each upload, in the folder of the releases."""

import datetime as dt
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from pipelines.core.home import Home

FILE = "published.jsonl"
UNKNOWN = "unknown"  # the commit of an upload that was begun


class Publication(BaseModel):
    """One upload of a release. `commit` is UNKNOWN where it was begun, and nobody noted its end."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repo: str
    tag: str
    commit: str
    at: dt.datetime = Field(default_factory=lambda: dt.datetime.now(dt.UTC))


def note_publication(home: Path, repo: str, tag: str, commit: str) -> None:
    """Note, once, where a release is published or will be."""
    if any((one.repo, one.tag, one.commit) == (repo, tag, commit) for one in _noted(home)):
        return
    path = Home(home).releases / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        # A crash may have cut the line before: it then ends here.
        cut = file.tell() > 0 and not path.read_bytes().endswith(b"\n")
        file.write(b"\n" * cut + Publication(repo=repo, tag=tag, commit=commit).model_dump_json().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def publications(home: Path) -> list[Publication]:
    """Every upload that was noted, oldest first; one that was begun counts until it has ended."""
    noted = _noted(home)
    ended = {(one.repo, one.tag) for one in noted if one.commit != UNKNOWN}
    return [one for one in noted if one.commit != UNKNOWN or (one.repo, one.tag) not in ended]


def _noted(home: Path) -> list[Publication]:
    """Every line but one that a crash cut off."""
    path = Home(home).releases / FILE
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [Publication.model_validate_json(line) for line in lines if line.endswith(b"}")]
