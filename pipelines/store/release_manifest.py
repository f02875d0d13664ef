"""What a release says of itself: `manifest.json` in its folder.

A release pins the version of every table, and lists its own files with their digests. So it can be checked whether it
is whole, whether another one holds the same, and what each of its rows was made from.
"""

import datetime as dt
import json
from typing import Literal

from pydantic import AliasChoices, Field

from pipelines.store.manifest import Document, File, Json
from schemas.ids import digest

MEDIA = "media"  # the check that counts what is lost with sound and pictures, and what is read without

Severity = Literal["refuse", "leave_out", "warn"]


class Shard(File):
    """One Parquet file of a release, relative to the release's folder."""

    split: str


class Spend(Document):
    """What a stage has asked a model so far, by the ledger of the home. `usd` is a decimal number, never a float."""

    stage: str
    model: str
    calls: int
    usd: str


class Source(Document):
    """A data set or site that the released rows come from.

    `consent` is one of `schemas.labels.CONSENTS`, the weakest that any of its rows has; `licence` is empty where the
    source names none; `lineage` are the sets that it was made from; `collected` says how and when.
    `rows` counts released rows.
    """

    name: str
    licence: str
    consent: str
    lineage: list[str]
    rows: int
    collected: str


class Calibration(Document):
    """How well a stage's rules find a kind (`schemas.calibrations`), by the posts of the file `gold`; a share is given
    with the bounds of its 95 % interval.
    """

    stage: str
    kind: str
    gold: str
    gold_sha256: str
    posts: int
    precision: tuple[float, float, float] | None
    recall: tuple[float, float, float] | None
    kappa: float | None
    auc: float | None


class Agreed(Document):
    """How far all people agree on a question of a kind of review (`schemas.reviews.Agreements`): figures by measure,
    each with the bounds of its 95 % interval; None: undefined.
    """

    kind: str
    question: str
    items: int
    people: int
    figures: dict[str, tuple[float, float | None, float | None] | None]


class Judge(Document):
    """Whether a model may stand in for a person (`schemas.reviews.JudgeTests`)."""

    kind: str
    question: str
    model: str
    people: int
    items: int
    epsilon: float
    omega: float
    rho: float
    kappa: float | None
    kappa_of_people: float | None


class Finding(Document):
    """A finding of a check: `refuse` stops a release unless it is allowed, `warn` is published with it; where it is
    `leave_out`, the release has no longer the rows that it speaks of: see `LeftOut`.

    `count` rows (or pairs, or values: `what` names the unit); `examples` are ids of up to a thousand, never a text.
    """

    check: str
    severity: Severity
    count: int
    what: str
    hint: str = Field(validation_alias=AliasChoices("hint", "remedy"))  # "remedy" in what older releases say
    examples: list[str] = Field(default_factory=list)


class LeftOut(Document):
    """Rows that stand in the pinned version of a config, and that the release leaves out: why, and their ids.

    A publication says how many, and not which.
    """

    config: str
    check: str
    count: int
    row_ids: list[str]


class Erasure(Document):
    """What an erasure took out of a release: whole rows, and parts of `changed` others. It says nothing of whom."""

    erasure: str
    rows: int
    changed: int


class Release(Document):
    """A release. `pins`: `table` or `table/partition` → version; `prompts`: id → id@version."""

    name: str
    made_at: dt.datetime
    code: str
    pins: dict[str, str]
    configs: dict[str, list[Shard]]
    settings: Json
    prompts: dict[str, str]
    spend: list[Spend]
    sources: list[Source]
    findings: list[Finding]
    allowed: list[str]
    left_out: list[LeftOut] = Field(default_factory=list)
    erasures: list[Erasure] = Field(default_factory=list)
    calibrations: list[Calibration] = Field(default_factory=list)
    agreement: list[Agreed] = Field(default_factory=list)
    judges: list[Judge] = Field(default_factory=list)

    @property
    def content(self) -> str:
        """16 hex digits over the files and the pins: equal for releases that hold the same, whatever their names."""
        files = {config: [shard.sha256 for shard in shards] for config, shards in self.configs.items()}
        decisive = json.dumps([files, self.pins], sort_keys=True, ensure_ascii=False)
        return digest(decisive)

    @property
    def shards(self) -> list[Shard]:
        """The files of all configs."""
        return [shard for shards in self.configs.values() for shard in shards]

    def rows(self, config: str, split: str | None = None) -> int:
        """Rows of a config, or of a split of it; 0 for one that is not there."""
        return sum(shard.rows for shard in self.configs.get(config, []) if split in (None, shard.split))


def text_only(release: Release) -> str:
    """What a card and a run say of it: the rounds that lacked media or are read without, or that none lacked any."""
    findings = (finding.what for finding in release.findings if finding.check == MEDIA)
    return next(findings, "text only: no round lacked media")
