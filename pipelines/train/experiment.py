"""Arms beside each other: the same rows, the same seeds, one table.

A TOML file says which::

    name = "empathy-arms"
    preset = "cpu_smoke"
    seeds = [1, 2]
    rows = 64                            # of every set; left out: all

    [[arms]]
    recipe = "empathy_coe"

    [[arms]]
    recipe = "empathy_coe"
    arm = "grpo_only"

    [settings.grpo]                      # of every run of a trainer
    "trainer.total_training_steps" = 50

Every run is one of `gongqing train`, named by experiment, recipe, arm and seed; so an experiment that was broken off
goes on where it was. A policy that starts from a warm start gets one of its own rows and seed, which arms share.
"""

import statistics
import tomllib
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pipelines.errors import RequestError, UnreadableFile
from pipelines.llm.asking import Provider
from pipelines.settings import Rewards
from pipelines.train.launch import Run, ToldRows
from pipelines.train.prepare import encoder_of, prepare, release_of
from pipelines.train.recipe import Overrides, Preset, Recipe, TrainerName, recipe
from pipelines.train.runs import Metrics
from pipelines.train.trainers import TRAINERS, validated

Looked = Callable[[Run], None]
Told = Callable[[Run, int, Metrics], None]


class ArmOf(BaseModel):
    """An arm of a recipe; none: the paper's own set-up."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipe: str
    arm: str = ""


class Experiment(BaseModel):
    """Which arms are trained, and what is equal for all of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,40}$")
    arms: tuple[ArmOf, ...] = Field(min_length=1)
    seeds: tuple[int, ...] = Field((0,), min_length=1)
    preset: Preset = "gpu"
    release: str | None = None
    rows: int | None = Field(None, ge=1)
    provider: Provider | None = None
    budget: Decimal | None = None  # the most that the judge of one run may cost
    encoder: str | None = None  # the run whose encoder E's reward asks
    settings: dict[TrainerName, dict[str, Any]] = Field(default_factory=dict)

    @field_validator("settings", mode="before")
    @classmethod
    def _keys_with_dots(cls, value: Any) -> Any:
        """A key without quotes is a table in a table to TOML."""
        return {name: dict(_flat(of)) for name, of in value.items()} if isinstance(value, dict) else value

    @field_validator("arms", "seeds")
    @classmethod
    def _each_once(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(value)) < len(value):
            raise ValueError("each may stand there once")
        return value


class ArmResult(NamedTuple):
    """What an arm came to, over the seeds: means, and how far the seeds lie apart (sample standard deviation; None of
    a single one). `shown` names the figure (`Trainer.shown`); `validation` is None where nothing was validated.
    """

    recipe: str
    arm: str
    seeds: int
    rows: int
    steps: int
    shown: str
    first: float
    last: float
    last_deviation: float | None
    validation: float | None
    validation_deviation: float | None


def read(path: Path) -> Experiment:
    """The experiment in a file. Raises UnreadableFile, and RequestError for what is none."""
    try:
        return Experiment.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UnreadableFile("there is no such file", where=path, remedy="name a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"not valid TOML: {error}", where=path, remedy="mend the line that is named") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise RequestError(
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
            where=path,
            remedy="docs/training.md says what may stand there",
        ) from error


def conduct(
    home: Path, told: Experiment, settings: Rewards, *, starting: Looked, counted: ToldRows, step: Told, ended: Looked
) -> list[ArmResult]:
    """Train every arm with every seed, one after the other, and gather what came of it, in the order of the file.

    Args:
        home: Where the releases are, and the runs will be.
        told: The experiment.
        settings: Which models judge.
        starting: Is told of each run before it starts.
        counted: Is told of its rows.
        step: Is told of each step.
        ended: Is told of each run once it has ended, also where it failed.

    Raises as `prepare` does for any arm before the first is trained, where that can be known, and as `Run.train` does.
    """
    release = release_of(home, told.release)
    for one in told.arms:
        arm = recipe(one.recipe).arm(one.arm)
        if "encoder" in recipe(arm.recipe or one.recipe).services:
            encoder_of(home, told.preset, release, told.encoder)
    outcomes = []
    for one in told.arms:
        runs = []
        for seed in told.seeds:
            for run in _runs(home, told, settings, one, seed):
                starting(run)
                try:
                    run.train(lambda at, metrics, run=run: step(run, at, metrics), counted)  # type: ignore[misc]
                finally:
                    if run.metrics():
                        ended(run)
            runs.append(run)
        outcomes.append(_outcome(one, runs))
    return outcomes


def _runs(home: Path, told: Experiment, settings: Rewards, one: ArmOf, seed: int) -> Iterator[Run]:
    """The runs of an arm and a seed: what it starts from, once that has ended, and itself."""
    chosen = recipe(one.recipe)
    arm = chosen.arm(one.arm)
    if arm.recipe is not None:
        chosen = recipe(arm.recipe)
    start = None
    if chosen.starts is not None and not arm.scratch:
        run = _run(home, told, settings, recipe(chosen.starts), arm.start_arm, seed, None)
        yield run
        start = run.folder.name
    yield _run(home, told, settings, recipe(one.recipe), one.arm, seed, start)


def _run(
    home: Path, told: Experiment, settings: Rewards, chosen: Recipe, arm: str, seed: int, start: str | None
) -> Run:
    trained = recipe(of_arm) if (of_arm := chosen.arm(arm).recipe) else chosen
    given: Overrides = {TRAINERS[trained.trainer].seed: seed, **told.settings.get(trained.trainer, {})}
    return prepare(
        home,
        chosen,
        told.preset,
        arm=arm,
        release=told.release,
        name="-".join(filter(None, (told.name, chosen.name, arm, f"s{seed}"))),
        start=start,
        encoder=told.encoder,
        provider=told.provider,
        budget=told.budget,
        settings=settings,
        most_rows=told.rows,
        given=given,
    )


def _flat(settings: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value


def _outcome(one: ArmOf, runs: list[Run]) -> ArmResult:
    shown = runs[0].trainer.shown
    curves = [[found[shown] for _, found in sorted(run.metrics().items()) if shown in found] for run in runs]
    lasts = [curve[-1] for curve in curves]
    validations = [found[-1] for run in runs if (found := _validations(run))]
    return ArmResult(
        recipe=one.recipe,
        arm=one.arm,
        seeds=len(runs),
        rows=min(run.rows for run in runs),
        steps=min(max(run.metrics()) for run in runs),
        shown=shown,
        first=statistics.fmean(curve[0] for curve in curves),
        last=statistics.fmean(lasts),
        last_deviation=_deviation(lasts),
        validation=statistics.fmean(validations) if validations else None,
        validation_deviation=_deviation(validations),
    )


def _validations(run: Run) -> list[float]:
    found = (validated(run.recipe.trainer, metrics) for _, metrics in sorted(run.metrics().items()))
    return [value for value in found if value is not None]


def _deviation(values: list[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None
