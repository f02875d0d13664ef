"""The stages: which tables are made from which, by what, in order. Dagster's assets and `refresh` read it from here.

A stage is a pure function from its parents' rows to rows kept and dropped. Whether it is up to date follows from
what its current version was made from: the parents' versions, the code, the settings that it reads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.accounts import Account, require_balance, settle
from pipelines.clean import clean_dialogues, clean_posts
from pipelines.code_version import code_version
from pipelines.dedup.search import searching
from pipelines.errors import DamagedVersion, NoVersion
from pipelines.release.prompt_sets import cer_prompts, coe_prompts, ecot_prompts
from pipelines.sample.turns import sample_turns
from pipelines.sample.unique import require_training_rows, unique
from pipelines.settings import Settings, engine
from pipelines.store.manifest import Run
from pipelines.store.store import Store, Version
from schemas.tables import PARTITIONED, TABLES

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


def _unique(given: Inputs) -> Made:
    with searching(engine(), given.cache) as search:
        made = unique(
            given.rows["clean_posts"],
            given.rows["clean_dialogues"],
            given.standing["splits"],
            given.settings.splits,
            seed=given.settings.seed,
            given_at=" ".join(f"{table}@{version}" for table, version in sorted(given.versions.items())),
            search=search,
        )
    require_training_rows(made, given.settings.splits)
    return made


STAGES: tuple[Stage, ...] = (
    Stage(
        "clean_posts",
        group="clean",
        tables=("clean_posts",),
        parents=("raw_posts", "imported_posts"),
        run=lambda given: {
            "clean_posts": clean_posts(
                pl.concat([given.rows["raw_posts"], given.rows["imported_posts"]]),
                given.settings.filters,
                given.settings.cleaning,
            )
        },
        modules=("pipelines.clean.posts",),
        reads=("filters", "cleaning"),
        units={"clean_posts": dict.fromkeys(("post", "answer"), ("raw_posts", "imported_posts"))},
    ),
    Stage(
        "clean_dialogues",
        group="clean",
        tables=("clean_dialogues",),
        parents=("imported_dialogues",),
        run=lambda given: {
            "clean_dialogues": clean_dialogues(
                given.rows["imported_dialogues"], given.settings.filters, given.settings.cleaning
            )
        },
        modules=("pipelines.clean.dialogues",),
        reads=("filters", "cleaning"),
        units={"clean_dialogues": {"dialogue": ("imported_dialogues",)}},
    ),
    Stage(
        "unique",
        group="unique",
        # `splits` is written first: killed after it, the next run finds the groups standing and gives the same rows.
        tables=("splits", "unique_posts", "unique_dialogues"),
        parents=("clean_posts", "clean_dialogues"),
        run=_unique,
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
            if pointer.promoted and table in stage.standing:  # what is built upon it has to follow
                return True
            store.read(table)
        except DamagedVersion:
            return True
    return False


def run_stage(stage: Stage, store: Store, settings: Settings, cache: Path | None = None) -> list[Version]:
    """Make the tables of a stage from its parents' current versions.

    Args:
        stage: What to run.
        store: Where its parents are, and its tables go.
        settings: All settings.
        cache: A folder that stages may remember work in, the home's `index/`; without it all work is done anew.

    Raises Unaccounted where rows vanish, and what `Store` raises.
    """
    parents = parents_of(stage, store)
    rows = _rows(store, stage.parents, parents)
    made = stage.run(
        Inputs(
            rows=rows,
            versions={parent.name: parent.version for parent in parents},
            standing={table: _standing(store, table) for table in stage.standing},
            settings=settings,
            cache=cache,
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
    """The accounts of a table as it is stored, against the versions that it was made from."""
    made = store.version(table)
    kept, dropped = store.read(table).collect(), store.read_dropped(table).collect()
    parents = []
    for name, version in made.manifest.runs[-1].parents.items():
        source, _, partition = name.partition("/")
        parents.append(store.version(source, version, partition or None))
    rows = _rows(store, stage.parents, parents)
    return [
        settle(unit, [rows[name] for name in names], kept, dropped)
        for unit, names in stage.units.get(table, {}).items()
    ]


def parents_of(stage: Stage, store: Store) -> list[Version]:
    """The current versions of a stage's parents.

    Raises NoVersion where a stage before this one never ran.
    """
    found = {table: store.current(table) for table in stage.parents}
    for table, versions in found.items():
        if not versions and table not in PARTITIONED:
            raise NoVersion(
                f"{stage.name} is made from {table}, and that was never made",
                remedy="gongqing refresh, without --select",
            )
    return [version for versions in found.values() for version in versions]


def _run(stage: Stage, parents: list[Version], settings: Settings) -> Run:
    return Run(
        parents={parent.name: parent.version for parent in parents},
        code=stage.code,
        settings=stage.settings(settings),
    )


def _rows(store: Store, tables: tuple[str, ...], versions: list[Version]) -> dict[str, pl.DataFrame]:
    """The rows of each table in exactly these versions; none where no data set of its kind was imported."""
    frames: dict[str, list[pl.DataFrame]] = {table: [TABLES[table].create_empty()] for table in tables}
    for one in versions:
        frames[one.table].append(store.read(one.table, one.version, one.partition).collect())
    return {table: pl.concat(found) for table, found in frames.items()}


def _standing(store: Store, table: str) -> pl.DataFrame:
    """The rows of a table that its stage builds upon.

    Raises DamagedVersion: what was given once cannot be made anew from anything else.
    """
    if store.pointer(table) is None:
        return TABLES[table].create_empty()
    try:
        return store.read(table).collect()
    except DamagedVersion as error:
        raise DamagedVersion(
            f"{error.what}; {table} remembers what was given once, and cannot be made anew",
            where=error.where,
            remedy=f"restore it from a backup, or go back to another version: gongqing tables promote {table} VERSION. "
            f"Without either, remove the folder of {table}: all splits are then given anew, and what was held out "
            "before may train",
        ) from error
