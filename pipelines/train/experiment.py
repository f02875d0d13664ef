"""Ablations beside each other: the same rows, the same seeds, one table.

A TOML file says which (docs/training.md has one).

Every run is one of `gongqing train`, named by experiment, recipe, ablation and seed; so an experiment that was broken
off goes on where it was. A policy that starts from a warm start gets one of the same rows and seed, which ablations
share. `plan_runs` and `prepare_runs` refuse what cannot be trained before `train_runs` trains anything.
"""

import statistics
import tomllib
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pipelines.errors import RequestError, UnreadableFile
from pipelines.llm.interface import JudgeProvider
from pipelines.settings import Rewards
from pipelines.train.launch import OnRows, Run
from pipelines.train.prepare import find_release, prepare, used_options
from pipelines.train.recipe import REWARD_SETTING, Overrides, Preset, Recipe, TrainerName, is_finite, load_recipe
from pipelines.train.runs import MODEL, ROWS, Metrics
from pipelines.train.trainers import TRAINERS, Figure, validation_of

OnRun = Callable[[Run], None]
OnRunStep = Callable[[Run, int, Metrics], None]


class Compared(BaseModel):
    """A recipe and an ablation of it; without one the paper's own set-up."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipe: str
    ablation: str = ""

    def __str__(self) -> str:
        return f"{self.recipe} {self.ablation}".strip()

    @property
    def trained(self) -> Recipe:
        """The recipe that is trained for it."""
        recipe = load_recipe(self.recipe)
        other = recipe.ablation(self.ablation).recipe
        return recipe if other is None else load_recipe(other)


class Experiment(BaseModel):
    """Which ablations are trained, and what is equal for all of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,40}$")
    ablations: tuple[Compared, ...] = Field(min_length=1)
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
        return {name: dict(_flat(table)) if isinstance(table, dict) else table for name, table in value.items()}

    @field_validator("settings")
    @classmethod
    def _values(cls, value: dict[TrainerName, dict[str, Any]]) -> dict[TrainerName, dict[str, Any]]:
        for trainer, settings in value.items():
            seeds = {key.removeprefix("+") for key in TRAINERS[trainer].seeds}
            for key, one in settings.items():
                if key.removeprefix("+") in seeds:
                    raise ValueError(f"{key} is the experiment's own to set: seeds = […]")
                if not isinstance(one, (bool, int, float, str, list)):
                    raise ValueError(f"{key}: {one} is no value of a setting")
                if not is_finite(one):
                    raise ValueError(f"{key}: {one} is no number to train with")
        return value

    @field_validator("ablations", "seeds")
    @classmethod
    def _each_once(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(value)) < len(value):
            raise ValueError("each may stand there once")
        return value


class Planned(NamedTuple):
    """What is trained for an ablation and a seed: its run, and the one that it starts from, if trained for it."""

    compared: Compared
    start: Run | None
    run: Run

    @property
    def runs(self) -> tuple[Run, ...]:
        """In the order in which they are trained."""
        return (self.run,) if self.start is None else (self.start, self.run)


class Result(NamedTuple):
    """The figures of an ablation over the seeds: means, and sample standard deviations (None of a single seed).
    `asked_rows` is None for all rows. `measured` says in words what the figures are: `figure` that of a step (`shown`
    by the trainer's name), and `validation_figure` that of the last validation, None without validation.
    """

    recipe: str
    ablation: str
    seeds: int
    rows: int
    asked_rows: int | None
    steps: int
    measured: str
    shown: str
    figure: Figure
    first: float
    last: float
    last_deviation: float | None
    validation_figure: Figure | None
    validation: float | None
    validation_deviation: float | None


def read_experiment(path: Path) -> Experiment:
    """The experiment in a file. Raises UnreadableFile, and RequestError for a wrong one."""
    try:
        return Experiment.model_validate(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise UnreadableFile("there is no such file", where=path, hint="name a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"not valid TOML: {error}", where=path, hint="mend the line that is named") from error
    except ValidationError as error:
        first = error.errors()[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise RequestError(what, where=path, hint="docs/training.md says what may stand there") from error


def plan_runs(home: Path, experiment: Experiment, rewards: Rewards) -> list[Planned]:
    """Every run of an experiment, in the order of the file, and of the seeds for each ablation; `rewards` says which
    models judge.

    Raises RequestError as `prepare` and `Run.check` do, for settings and options without effect, and where ablations
    would train on different numbers of rows.
    """
    find_release(home, experiment.release)
    used = set[str]().union(*(used_options(one.trained) for one in experiment.ablations))
    for option in ("provider", "budget", "encoder"):
        if (value := getattr(experiment, option)) is not None and option not in used:
            raise RequestError(f"no ablation has a use for {option}", where=value, hint="leave it out")
    planned = [_plan(home, experiment, rewards, one, seed) for one in experiment.ablations for seed in experiment.seeds]
    for trainer in experiment.settings.keys() - {run.recipe.trainer for run in _each_once(planned)}:
        what = f"no ablation is trained by {trainer}"  # and no warm start
        raise RequestError(what, where=f"settings.{trainer}", hint="leave it out")
    rows = {str(one.compared): one.run.rows for one in planned}
    if len(set(rows.values())) > 1:
        raise RequestError(
            "the ablations would train on different numbers of rows: "
            + ", ".join(f"{name} on {number:,}" for name, number in rows.items()),
            where="rows",
            hint=f"rows = {min(rows.values())}, which all of them have; or compare in separate experiments",
        )
    for run in _each_once(planned):
        run.check()
    return planned


def prepare_runs(planned: Sequence[Planned], on_run: OnRun) -> None:
    """Compose every ablation, and count its rows, with its first seed: seeds differ in nothing that is checked. What
    cannot be composed is refused before anything is written: the first is composed as its rows are counted. `on_run`
    gets each run before.

    Raises as `Run.prepare_rows` does.
    """
    firsts = list({one.compared: one for one in reversed(planned)}.values())[::-1]
    for place, run in enumerate(run for run in _each_once(firsts) if not (run.folder / ROWS).exists()):
        on_run(run)
        if place:
            run.compose()
    for one in firsts:
        for run in one.runs:
            start = one.start if run is one.run else None
            # The model of a run that is yet to be trained will have the tokens of what that starts from.
            awaited = start is not None and not (start.folder / MODEL).is_dir()
            run.prepare_rows(str(start.overrides[start.trainer.model]) if start and awaited else None)


def train_runs(
    experiment: Experiment, planned: Sequence[Planned], *, on_start: OnRun, on_rows: OnRows, on_step: OnRunStep,
    on_end: OnRun,
) -> list[Result]:  # fmt: skip
    """Train what is planned, one after the other, and gather the results, in the order of the file. `on_end` gets each
    run once it has ended, also where it failed.

    Raises as `Run.train` does.
    """
    for run in _each_once(planned):
        on_start(run)
        try:
            run.train(lambda step, metrics, run=run: on_step(run, step, metrics), on_rows)  # type: ignore[misc]
        finally:
            if run.metrics():
                on_end(run)
    results = []
    for compared in experiment.ablations:
        same = [one for one in planned if one.compared == compared]
        runs = [one.run for one in same]
        results.append(summarise(compared.recipe, compared.ablation, experiment.rows, runs, same[0].start))
    return results


def summarise(recipe: str, ablation: str, asked_rows: int | None, runs: Sequence[Run], start: Run | None) -> Result:
    """The result of an ablation, by its runs, one a seed, all at their end, and what the first has started from, if
    that was trained for it.
    """
    trainer = runs[0].trainer
    metrics = [sorted(run.metrics().items()) for run in runs]
    curves = [[figures[trainer.shown] for _, figures in steps if trainer.shown in figures] for steps in metrics]
    lasts = [curve[-1] for curve in curves]
    validated = [[validation_of(runs[0].recipe.trainer, figures) for _, figures in steps] for steps in metrics]
    validations = [values[-1] for one in validated if (values := [value for value in one if value is not None])]
    return Result(
        recipe=recipe,
        ablation=ablation,
        seeds=len(runs),
        rows=runs[0].rows,
        asked_rows=asked_rows,
        steps=min(steps[-1][0] for steps in metrics),
        measured=describe_figures(runs[0], start),
        shown=trainer.shown,
        figure=trainer.figure,
        first=statistics.fmean(curve[0] for curve in curves),
        last=statistics.fmean(lasts),
        last_deviation=_deviation(lasts),
        validation_figure=trainer.validation_figure if validations else None,
        validation=statistics.fmean(validations) if validations else None,
        validation_deviation=_deviation(validations),
    )


def describe_figures(run: Run, start: Run | None) -> str:
    """What the figures of a run are, in words, and what it starts from."""
    if run.recipe.trainer == "grpo":
        text = f"reward {run.recipe.reward} of a step's outputs"
        settings = {key.rpartition(".")[2]: value for key, value in run.overrides.items() if REWARD_SETTING in key}
        if settings:
            text += ", with " + ", ".join(f"{name} {value}" for name, value in settings.items())
        if run.judge is not None:
            models = run.judge.models
            apart = [model for option, model in models.items() if option != "model"]
            text += f", judged by {' and '.join(dict.fromkeys(apart or [models['model']]))}"
    elif run.recipe.trainer == "sft":
        text = f"loss of {run.recipe.name} on what it imitates; it writes no outputs, so it has no reward"
    else:
        text = "loss over triplets"
    return text if start is None else f"{text}; from {start.recipe.name} on {start.rows:,} rows"


def _deviation(values: list[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None


def _each_once(planned: Sequence[Planned]) -> list[Run]:
    """The runs; ablations may share a warm start."""
    return list({run.folder: run for one in planned for run in one.runs}.values())


def _plan(home: Path, experiment: Experiment, rewards: Rewards, compared: Compared, seed: int) -> Planned:
    trained, ablation = compared.trained, load_recipe(compared.recipe).ablation(compared.ablation)
    start = None
    if (first := trained.start(ablation)) is not None:
        warm = Compared(recipe=first, ablation=ablation.start)
        start = _prepare(home, experiment, rewards, warm, seed, None)
    return Planned(compared, start, _prepare(home, experiment, rewards, compared, seed, start))


def _prepare(
    home: Path, experiment: Experiment, rewards: Rewards, compared: Compared, seed: int, start: Run | None
) -> Run:
    recipe = compared.trained
    seeds = dict.fromkeys(TRAINERS[recipe.trainer].seeds, seed)
    settings: Overrides = {**seeds, **experiment.settings.get(recipe.trainer, {})}
    used = used_options(recipe)
    return prepare(
        home,
        load_recipe(compared.recipe),
        experiment.preset,
        ablation=compared.ablation,
        release=experiment.release,
        name="-".join(filter(None, (experiment.name, compared.recipe, compared.ablation, f"s{seed}"))),
        start=None if start is None else start.folder.name,
        awaited=() if start is None else (start.folder.name,),
        encoder=experiment.encoder if "encoder" in used else None,
        provider=experiment.provider if "provider" in used else None,
        budget=experiment.budget if "budget" in used else None,
        rewards=rewards,
        most_rows=experiment.rows,
        settings=settings,
    )


def _flat(settings: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value
