"""The stages: which tables are made from which, by what, in order. Dagster's assets and `refresh` read it from here.

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

from pipelines.annotate import cer, coe, coherence, ecot, emotions, topics
from pipelines.annotate.plan import Plan
from pipelines.clean import clean_dialogues, clean_posts
from pipelines.code_version import code_version
from pipelines.dedup.search import searching
from pipelines.release.prompt_sets import cer_prompts, coe_prompts, ecot_prompts
from pipelines.sample.turns import sample_turns
from pipelines.sample.unique import require_training_rows, unique
from pipelines.settings import Settings, engine

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
    aliases of the models, and `asks` names the setting of `[annotate]` that holds these. `reads` names the settings
    that decide its result. `units` says for a table in which units its rows are accounted for, each with the parents
    that they come from. `standing` names tables of its own that the stage builds upon.
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
    standing: tuple[str, ...] = ()

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
        named = getattr(settings.annotate, self.asks) if self.asks else ()
        return (named,) if isinstance(named, str) else tuple(named)


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


# What the rules answer is code like any other: where it changes, what they made is made anew.
_RULES = "pipelines.annotate.rules.answers"

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
        "coherent_dialogues",
        group="annotate",
        tables=("coherent_dialogues",),
        parents=("unique_dialogues",),
        plan=lambda given, models: coherence.plan(given.rows["unique_dialogues"], models),
        asks="coherence",
        modules=("pipelines.annotate.coherence", _RULES),
        units={"coherent_dialogues": {"dialogue": ("unique_dialogues",)}},
    ),
    Stage(
        "sampled_turns",
        group="sample",
        tables=("sampled_turns",),
        parents=("coherent_dialogues",),
        run=lambda given: {
            "sampled_turns": sample_turns(
                given.rows["coherent_dialogues"], given.settings.sampling, given.settings.seed
            )
        },
        modules=("pipelines.sample.turns",),
        reads=("sampling", "seed"),
        units={"sampled_turns": {"round": ("coherent_dialogues",)}},
    ),
    Stage(
        "topics",
        group="annotate",
        tables=("topics",),
        parents=("unique_posts",),
        plan=lambda given, models: topics.plan(given.rows["unique_posts"], models),
        asks="topics",
        modules=("pipelines.annotate.topics", _RULES),
        units={"topics": {"post": ("unique_posts",)}},
    ),
    Stage(
        "emotions",
        group="annotate",
        tables=("emotions",),
        parents=("unique_posts",),
        plan=lambda given, models: emotions.plan(given.rows["unique_posts"], models),
        asks="emotions",
        modules=("pipelines.annotate.emotions", _RULES),
        units={"emotions": dict.fromkeys(("post", "answer"), ("unique_posts",))},
    ),
    Stage(
        "ecot_chains",
        group="annotate",
        tables=("ecot_chains",),
        parents=("unique_posts", "splits", "topics"),
        plan=lambda given, models: ecot.plan(
            given.rows["unique_posts"], given.rows["splits"], given.rows["topics"], models
        ),
        asks="ecot",
        modules=("pipelines.annotate.ecot", _RULES),
        units={"ecot_chains": {"post": ("unique_posts",)}},
    ),
    Stage(
        "coe_chains",
        group="annotate",
        tables=("coe_chains",),
        parents=("unique_posts", "splits", "topics"),
        plan=lambda given, models: coe.plan(
            given.rows["unique_posts"],
            given.rows["splits"],
            given.rows["topics"],
            models,
            seed=given.settings.seed,
            human_only=given.settings.annotate.human_answers,
        ),
        asks="coe",
        modules=("pipelines.annotate.coe", _RULES),
        reads=("seed", "annotate.human_answers"),
        units={"coe_chains": {"post": ("unique_posts",)}},
    ),
    Stage(
        "cer_candidates",
        group="annotate",
        tables=("cer_candidates",),
        parents=("sampled_turns", "splits"),
        plan=lambda given, models: cer.plan(given.rows["sampled_turns"], given.rows["splits"], models),
        asks="cer",
        modules=("pipelines.annotate.cer", _RULES),
        units={"cer_candidates": {"round": ("sampled_turns",)}},
    ),
    Stage(
        "grpo_ecot",
        group="prompts",
        tables=("grpo_ecot",),
        parents=("unique_posts", "splits", "topics"),
        run=lambda given: {
            "grpo_ecot": ecot_prompts(
                given.rows["unique_posts"],
                given.rows["splits"],
                given.settings.prompts,
                given.settings.seed,
                given.rows["topics"],
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
        parents=("unique_posts", "splits", "topics"),
        run=lambda given: {
            "grpo_coe": coe_prompts(
                given.rows["unique_posts"],
                given.rows["splits"],
                given.settings.prompts,
                given.settings.seed,
                given.rows["topics"],
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
