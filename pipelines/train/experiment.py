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
goes on where it was. A policy that starts from a warm start gets one of its own rows and seed, which arms share. What
cannot be trained is found out before anything is: `plan`, `make_ready`, and only then `conduct`.
"""

import tomllib
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pipelines.errors import RequestError, UnreadableFile
from pipelines.llm.interface import JudgeProvider
from pipelines.settings import Rewards
from pipelines.train.kinds import finite
from pipelines.train.launch import Run, ToldRows
from pipelines.train.prepare import prepare, release_of, uses
from pipelines.train.recipe import Overrides, Preset, Recipe, TrainerName, recipe
from pipelines.train.results import ArmResult, result
from pipelines.train.runs import MODEL, ROWS, Metrics
from pipelines.train.trainers import TRAINERS

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
    seeds: tuple[Annotated[int, Field(strict=True, ge=0, lt=2**31)], ...] = Field((0,), min_length=1)
    preset: Preset = "gpu"
    release: str | None = None
    rows: int | None = Field(None, strict=True, ge=1)
    provider: JudgeProvider | None = None
    budget: Decimal | None = None  # the most that the judge of one run may cost
    encoder: str | None = None  # the run whose encoder E's reward asks
    settings: dict[TrainerName, dict[str, Any]] = Field(default_factory=dict)

    @field_validator("settings", mode="before")
    @classmethod
    def _keys_with_dots(cls, value: Any) -> Any:
        """A key without quotes is a table in a table to TOML."""
        if not isinstance(value, dict):
            return value
        return {name: dict(_flat(of)) if isinstance(of, dict) else of for name, of in value.items()}

    @field_validator("settings")
    @classmethod
    def _numbers(cls, value: dict[TrainerName, dict[str, Any]]) -> dict[TrainerName, dict[str, Any]]:
        for settings in value.values():
            for key, one in settings.items():
                if not isinstance(one, (bool, int, float, str, list)):
                    raise ValueError(f"{key}: {one} is no value of a setting")
                if not finite(one):
                    raise ValueError(f"{key}: {one} is no number to train with")
        return value

    @field_validator("arms", "seeds")
    @classmethod
    def _each_once(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(value)) < len(value):
            raise ValueError("each may stand there once")
        return value


class Planned(NamedTuple):
    """What is trained for an arm and a seed: its run, and the one that it starts from, where that is trained for it."""

    of: ArmOf
    start: Run | None
    run: Run

    @property
    def runs(self) -> tuple[Run, ...]:
        """In the order in which they are trained."""
        return (self.run,) if self.start is None else (self.start, self.run)


def read(path: Path) -> Experiment:
    """The experiment in a file. Raises UnreadableFile, and RequestError for what is none."""
    try:
        return Experiment.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UnreadableFile("there is no such file", where=path, hint="name a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"not valid TOML: {error}", where=path, hint="mend the line that is named") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise RequestError(
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
            where=path,
            hint="docs/training.md says what may stand there",
        ) from error


def plan(home: Path, told: Experiment, settings: Rewards) -> list[Planned]:
    """Every run of an experiment, in the order of the file, and of the seeds for each arm.

    Args:
        home: Where the releases are, and the runs will be.
        told: The experiment.
        settings: Which models judge.

    Raises RequestError as `prepare` and `Run.check` do, for a seed among the settings, for what no arm has a use for,
    and where arms would train on different numbers of rows.
    """
    release_of(home, told.release)
    _refuse_seeds(told)
    _refuse_idle(told)
    found = [_planned(home, told, settings, one, seed) for one in told.arms for seed in told.seeds]
    _refuse_untrained(told, _each(found))
    rows = {_name(one.of): one.run.rows for one in found}
    if len(set(rows.values())) > 1:
        raise RequestError(
            "the arms would train on different numbers of rows: "
            + ", ".join(f"{name} on {number:,}" for name, number in rows.items()),
            where="rows",
            hint=f"rows = {min(rows.values())}, which all of them have; or compare in experiments apart",
        )
    for run in _each(found):
        run.check()
    return found


def make_ready(planned: Sequence[Planned], looked: Looked) -> None:
    """Compose every arm, and then count its rows, with its first seed, so that one that cannot be trained is not found
    out after others were: seeds differ in nothing that is looked at. `looked` is told of each run before.

    Raises as `Run.ready` does.
    """
    firsts = list({one.of: one for one in reversed(planned)}.values())[::-1]
    for run in _each(firsts):
        if not (run.folder / ROWS).exists():
            looked(run)
            run.composed()
    for one in firsts:
        for run in one.runs:
            start = one.start if run is one.run else None
            run.ready(_tokens(start) if start and not (start.folder / MODEL).is_dir() else None)


def conduct(
    told: Experiment, planned: Sequence[Planned], *, starting: Looked, counted: ToldRows, step: Told, ended: Looked
) -> list[ArmResult]:
    """Train what is planned, one after the other, and gather what came of it, in the order of the file.

    Args:
        told: The experiment.
        planned: Its runs.
        starting: Is told of each run before it starts.
        counted: Is told of its rows.
        step: Is told of each step.
        ended: Is told of each run once it has ended, also where it failed.

    Raises as `Run.train` does.
    """
    for run in _each(planned):
        starting(run)
        try:
            run.train(lambda at, metrics, run=run: step(run, at, metrics), counted)  # type: ignore[misc]
        finally:
            if run.metrics():
                ended(run)
    found = []
    for arm in told.arms:
        of_arm = [one for one in planned if one.of == arm]
        found.append(result(arm.recipe, arm.arm, told.rows, [one.run for one in of_arm], of_arm[0].start))
    return found


def _each(planned: Sequence[Planned]) -> list[Run]:
    """The runs, each once: arms may share a warm start."""
    return list({run.folder: run for one in planned for run in one.runs}.values())


def _refuse_seeds(told: Experiment) -> None:
    for trainer, settings in told.settings.items():
        seeds = {key.removeprefix("+") for key in TRAINERS[trainer].seeds}
        for key in settings:
            if key.removeprefix("+") in seeds:
                raise RequestError(
                    f"{key} is the experiment's own to set", where=f"settings.{trainer}", hint="seeds = […]"
                )


def _refuse_idle(told: Experiment) -> None:
    used = set().union(*(uses(_trained(one)) for one in told.arms))
    for option in ("provider", "budget", "encoder"):
        if (value := getattr(told, option)) is not None and option not in used:
            raise RequestError(f"no arm has a use for {option}", where=value, hint="leave it out")


def _refuse_untrained(told: Experiment, runs: Sequence[Run]) -> None:
    """Settings of a trainer by whom nothing is trained, no warm start either."""
    for trainer in told.settings.keys() - {run.recipe.trainer for run in runs}:
        raise RequestError(f"no arm is trained by {trainer}", where=f"settings.{trainer}", hint="leave it out")


def _trained(one: ArmOf) -> Recipe:
    """The recipe that is trained for an arm."""
    chosen = recipe(one.recipe)
    other = chosen.arm(one.arm).recipe
    return chosen if other is None else recipe(other)


def _planned(home: Path, told: Experiment, settings: Rewards, one: ArmOf, seed: int) -> Planned:
    trained, arm = _trained(one), recipe(one.recipe).arm(one.arm)
    start = None
    if trained.starts is not None and not arm.scratch:
        start = _run(home, told, settings, ArmOf(recipe=trained.starts, arm=arm.start_arm), seed, None)
    return Planned(one, start, _run(home, told, settings, one, seed, start))


def _run(home: Path, told: Experiment, settings: Rewards, one: ArmOf, seed: int, start: Run | None) -> Run:
    trained = _trained(one)
    trainer = TRAINERS[trained.trainer]
    given: Overrides = {**dict.fromkeys(trainer.seeds, seed), **told.settings.get(trained.trainer, {})}
    used = uses(trained)
    return prepare(
        home,
        recipe(one.recipe),
        told.preset,
        arm=one.arm,
        release=told.release,
        name="-".join(filter(None, (told.name, one.recipe, one.arm, f"s{seed}"))),
        start=None if start is None else start.folder.name,
        awaited=() if start is None else (start.folder.name,),
        encoder=told.encoder if "encoder" in used else None,
        provider=told.provider if "provider" in used else None,
        budget=told.budget if "budget" in used else None,
        settings=settings,
        most_rows=told.rows,
        given=given,
    )


def _tokens(start: Run) -> str:
    """What a run that is yet to be trained starts from: its model will have the same tokens."""
    return str(start.overrides[start.trainer.model])


def _name(one: ArmOf) -> str:
    return f"{one.recipe} {one.arm}".strip()


def _flat(settings: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value
