"""What a stage is: which tables are made from which, by what, and what decides the result.

A stage is a pure function from its parents' rows to rows kept and dropped. Whether it is up to date follows from
what its current version was made from: the parents' versions, the code, the settings that it reads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.annotate.plan import Plan
from pipelines.code_version import code_version
from pipelines.settings import Settings
from schemas.tables import PARTITIONED

Made = dict[str, tuple[pl.DataFrame, pl.DataFrame]]


@dataclass(frozen=True)
class Inputs:
    """What a run of a stage is given: rows and versions of its parents by table, rows of the tables that it builds
    upon, all settings (it reads those that it named), and a folder to remember work in, on which no result depends,
    or None.
    """

    rows: Mapping[str, pl.DataFrame]
    versions: Mapping[str, str]
    standing: Mapping[str, pl.DataFrame]
    settings: Settings
    cache: Path | None


@dataclass(frozen=True)
class Stage:
    """One step of the pipeline.

    `run` gives `(kept, dropped)` by table. A stage that asks models has a `plan` in its place, from its inputs and the
    aliases of the models, and `asks` names the setting that holds these. `reads` names the settings that decide its
    result. `units` says for a table in which units its rows are accounted for, each with the parents that they come
    from. `standing` names tables of its own that the stage builds upon, each with what their loss would mean.
    `may_lack` names parents that people fill, maybe later.
    """

    name: str
    group: str
    tables: tuple[str, ...]
    parents: tuple[str, ...]
    modules: tuple[str, ...]
    run: Callable[[Inputs], Made] | None = None
    plan: Callable[[Inputs, tuple[str, ...]], Plan] | None = None
    asks: str | None = None
    reads: tuple[str, ...] = ()
    units: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    standing: Mapping[str, str] = field(default_factory=dict)
    may_lack: tuple[str, ...] = ()

    @property
    def needed(self) -> tuple[str, ...]:
        """The parents that must have been made before: not those that are fed from outside, or that people fill."""
        return tuple(table for table in self.parents if table not in PARTITIONED and table not in self.may_lack)

    @property
    def code(self) -> str:
        """The version of the stage's code."""
        return code_version(*self.modules)

    def settings(self, settings: Settings) -> dict[str, Any]:
        """The part of the settings that decides the stage's result."""
        dumped = settings.model_dump(mode="json")
        decisive = {name: reduce(getitem, name.split("."), dumped) for name in self.reads}
        return decisive | ({"models": self.models(settings)} if self.asks else {})

    def models(self, settings: Settings) -> tuple[str, ...]:
        """The aliases of the models that the settings name for the stage; none for one that asks none."""
        if not self.asks:
            return ()
        named: Any = reduce(getattr, self.asks.split("."), settings)
        return (named,) if isinstance(named, str) else tuple(named)
