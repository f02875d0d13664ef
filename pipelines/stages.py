"""The stages: which tables are made from which, by what, in order. Dagster's assets and `refresh` read it from here.

A stage is a pure function from its parents' rows to rows kept and dropped. Whether it is up to date follows from
what its current version was made from: the parents' versions, the code, the settings that it reads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from pipelines.accounts import Account, require_balance, settle
from pipelines.clean import clean_dialogues, clean_posts
from pipelines.code_version import code_version
from pipelines.errors import DamagedVersion
from pipelines.release.prompt_sets import cer_prompts, coe_prompts, ecot_prompts
from pipelines.sample.turns import sample_turns
from pipelines.sample.unique import unique
from pipelines.settings import Settings
from pipelines.store.manifest import Run
from pipelines.store.store import Store, Version
from schemas.tables import TABLES

Made = dict[str, tuple[pl.DataFrame, pl.DataFrame]]


@dataclass(frozen=True)
class Inputs:
    """What a run of a stage is given: rows and versions of its parents by table, rows of the tables that it builds
    upon, and all settings (it reads those that it named).
    """

    rows: Mapping[str, pl.DataFrame]
    versions: Mapping[str, str]
    standing: Mapping[str, pl.DataFrame]
    settings: Settings


@dataclass(frozen=True)
class Stage:
    """One step of the pipeline.

    `run` gives `(kept, dropped)` by table. `reads` names the settings that decide its result. `units` says for a table
    in which units its rows are accounted for, each with the parents that they come from. `standing` names tables of
    its own that the stage builds upon.
    """

    name: str
    group: str
    tables: tuple[str, ...]
    parents: tuple[str, ...]
    run: Callable[[Inputs], Made]
    modules: tuple[str, ...]
    reads: tuple[str, ...] = ()
    units: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    standing: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """The version of the stage's code."""
        return code_version(*self.modules)

    def settings(self, settings: Settings) -> dict[str, Any]:
        """The part of the settings that decides the stage's result."""
        dumped = settings.model_dump(mode="json")
        return {name: dumped[name] for name in self.reads}


STAGES: tuple[Stage, ...] = (
    Stage(
        "clean_posts",
        group="clean",
        tables=("clean_posts",),
        parents=("imported_posts",),
        run=lambda given: {"clean_posts": clean_posts(given.rows["imported_posts"], given.settings.filters)},
        modules=("pipelines.clean.posts",),
        reads=("filters",),
        units={"clean_posts": {"post": ("imported_posts",), "answer": ("imported_posts",)}},
    ),
    Stage(
        "clean_dialogues",
        group="clean",
        tables=("clean_dialogues",),
        parents=("imported_dialogues",),
        run=lambda given: {
            "clean_dialogues": clean_dialogues(given.rows["imported_dialogues"], given.settings.filters)
        },
        modules=("pipelines.clean.dialogues",),
        reads=("filters",),
        units={"clean_dialogues": {"dialogue": ("imported_dialogues",)}},
    ),
    Stage(
        "unique",
        group="unique",
        # `splits` is written first: killed after it, the next run finds the groups standing and gives the same rows.
        tables=("splits", "unique_posts", "unique_dialogues"),
        parents=("clean_posts", "clean_dialogues"),
        run=lambda given: unique(
            given.rows["clean_posts"],
            given.rows["clean_dialogues"],
            given.standing["splits"],
            given.settings.splits,
            seed=given.settings.seed,
            given_at=" ".join(f"{table}@{version}" for table, version in sorted(given.versions.items())),
        ),
        modules=("pipelines.sample.unique",),
        reads=("splits", "seed"),
        units={
            "unique_posts": {"post": ("clean_posts",), "answer": ("clean_posts",)},
            "unique_dialogues": {"dialogue": ("clean_dialogues",)},
        },
        standing=("splits",),
    ),
    Stage(
        "sampled_turns",
        group="sample",
        tables=("sampled_turns",),
        parents=("unique_dialogues",),
        run=lambda given: {
            "sampled_turns": sample_turns(given.rows["unique_dialogues"], given.settings.sampling, given.settings.seed)
        },
        modules=("pipelines.sample.turns",),
        reads=("sampling", "seed"),
        units={"sampled_turns": {"round": ("unique_dialogues",)}},
    ),
    Stage(
        "grpo_ecot",
        group="prompts",
        tables=("grpo_ecot",),
        parents=("unique_posts", "splits"),
        run=lambda given: {
            "grpo_ecot": ecot_prompts(
                given.rows["unique_posts"], given.rows["splits"], given.settings.prompts, given.settings.seed
            )
        },
        modules=("pipelines.release.prompt_sets",),
        reads=("prompts", "seed"),
        units={"grpo_ecot": {"post": ("unique_posts",)}},
    ),
    Stage(
        "grpo_coe",
        group="prompts",
        tables=("grpo_coe",),
        parents=("unique_posts", "splits"),
        run=lambda given: {
            "grpo_coe": coe_prompts(
                given.rows["unique_posts"], given.rows["splits"], given.settings.prompts, given.settings.seed
            )
        },
        modules=("pipelines.release.prompt_sets",),
        reads=("prompts", "seed"),
        units={"grpo_coe": {"post": ("unique_posts",)}},
    ),
    Stage(
        "grpo_cer",
        group="prompts",
        tables=("grpo_cer",),
        parents=("sampled_turns", "splits"),
        run=lambda given: {
            "grpo_cer": cer_prompts(given.rows["sampled_turns"], given.rows["splits"], given.settings.prompts)
        },
        modules=("pipelines.release.prompt_sets",),
        reads=("prompts",),
        units={"grpo_cer": {"round": ("sampled_turns",)}},
    ),
)


def is_stale(stage: Stage, store: Store, settings: Settings) -> bool:
    """Whether a run of the stage could change anything: a parent, the code, or a setting is another, or a file is
    damaged.
    """
    inputs = _run(stage, parents_of(stage, store), settings).inputs
    for table in stage.tables:
        try:
            pointer = store.pointer(table)
            if pointer is None or pointer.inputs != inputs:
                return True
            store.read(table)
        except DamagedVersion:
            return True
    return False


def run_stage(stage: Stage, store: Store, settings: Settings) -> list[Version]:
    """Make the tables of a stage from its parents' current versions.

    Raises Unaccounted where rows vanish, and what `Store` raises.
    """
    parents = parents_of(stage, store)
    rows = {table: _rows(store, table) for table in stage.parents}
    made = stage.run(
        Inputs(
            rows=rows,
            versions={parent.name: parent.version for parent in parents},
            standing={table: _rows(store, table) for table in stage.standing},
            settings=settings,
        )
    )
    for table, units in stage.units.items():
        require_balance(
            table, [settle(unit, [rows[name] for name in names], *made[table]) for unit, names in units.items()]
        )
    run = _run(stage, parents, settings)
    return [
        store.write(table, *made[table], parents=parents, code=run.code, settings=run.settings)
        for table in stage.tables
    ]


def accounts(stage: Stage, table: str, store: Store) -> list[Account]:
    """The accounts of a table as it is stored, against its parents as they are stored."""
    kept, dropped = store.read(table).collect(), store.read_dropped(table).collect()
    return [
        settle(unit, [_rows(store, name) for name in names], kept, dropped)
        for unit, names in stage.units.get(table, {}).items()
    ]


def parents_of(stage: Stage, store: Store) -> list[Version]:
    """The current versions of a stage's parents."""
    return [version for table in stage.parents for version in store.current(table)]


def _run(stage: Stage, parents: list[Version], settings: Settings) -> Run:
    return Run(
        parents={parent.name: parent.version for parent in parents},
        code=stage.code,
        settings=stage.settings(settings),
    )


def _rows(store: Store, table: str) -> pl.DataFrame:
    """The current rows of a table; an empty frame where it was never written."""
    return store.read(table).collect() if store.current(table) else TABLES[table].create_empty()
