"""What lies beside the Parquet of a version: `manifest.json`, and the pointer `current.json` of a table."""

import datetime as dt
import json
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import to_jsonable_python

from schemas.ids import digest

MANIFEST = "manifest.json"  # below the folder of a version or a release

# What is in memory is what a manifest gives back: a tuple is a list, a path is a string.
Json = Annotated[dict[str, Any], BeforeValidator(to_jsonable_python)]


class Document(BaseModel):
    """A part of a manifest, or a whole one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def to_bytes(self) -> bytes:
        """As it lies on disk."""
        return (json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n").encode()


class File(Document):
    """One Parquet file, relative to the folder of its version or release."""

    path: str
    rows: int
    bytes: int
    sha256: str


class Chunk(File):
    """A file of a version: some of its rows, or of those that were dropped.

    `content` is the hash of its rows, empty in versions that were written before there were chunks; `made_from` names
    what a stage made it from that works chunk by chunk, empty where it was cut out of a whole table.
    """

    content: str = ""
    made_from: str = ""


class Run(Document):
    """One run that produced the version. Two runs with the same `inputs` need not both be made."""

    parents: dict[str, str] = Field(default_factory=dict)  # table or table/partition -> version
    code: str = ""
    settings: Json = Field(default_factory=dict)
    note: Json = Field(default_factory=dict)  # what does not decide the content: the file's name, counts
    at: dt.datetime = Field(default_factory=lambda: dt.datetime.now(dt.UTC))

    @property
    def inputs(self) -> str:
        """16 hex digits of all that decides what the run makes: parents, code and settings."""
        decisive = json.dumps([self.parents, self.code, self.settings], sort_keys=True, ensure_ascii=False)
        return digest(decisive)


class Column(Document):
    """A column as it was declared when the version was written."""

    name: str
    type: str
    description: str


class Tombstone(Document):
    """A note that rows of a version were erased. It names none of them (`pipelines.operations.erase`).

    `rows` and `dropped` were erased of each part, `changed` rows lost a part: an answer, a hash. `content` is the hash
    of what is left; empty where the schema is no longer today's.
    """

    erasure: str
    at: dt.datetime = Field(default_factory=lambda: dt.datetime.now(dt.UTC))
    rows: int
    dropped: int
    changed: int
    content: str


class Manifest(Document):
    """One version. It is written last: a folder without it is no version."""

    table: str
    partition: str | None
    version: str
    schema_version: int
    columns: list[Column]
    rows: int
    dropped: int
    reasons: dict[str, int]  # "unit: reason" -> rows dropped
    files: list[Chunk]
    runs: list[Run]  # each once; the last is the one that made it last
    erasures: list[Tombstone] = Field(default_factory=list)  # the version is named after what it held before them

    @property
    def place(self) -> tuple[str, str | None, str]:
        """Table, partition, version."""
        return self.table, self.partition, self.version

    def erased_by(self, erasure: str) -> bool:
        """Whether the version has the tombstone of an erasure."""
        return any(tombstone.erasure == erasure for tombstone in self.erasures)

    def dropped_for(self, *reasons: str) -> int:
        """How many rows, of any unit, were dropped for one of `reasons`."""
        return sum(rows for name, rows in self.reasons.items() if name.partition(": ")[2] in reasons)


class Pointer(Document):
    """Which version of a table is the current one, and the inputs that were last brought up to date.

    `inputs` stays when a person promotes an older version, so that a refresh does not undo the choice until
    something upstream really changes.
    """

    version: str = Field(pattern=r"^[0-9a-f]{16}$")
    inputs: str
    promoted: bool = False
