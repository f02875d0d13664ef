"""What an arm of an experiment came to, and what its figures are."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from pipelines.train.launch import Run
from pipelines.train.prepare import REWARD_SETTING
from pipelines.train.trainers import Figure, validated


class ArmResult(NamedTuple):
    """What an arm came to, over the seeds: means, and how far the seeds lie apart (sample standard deviation; None of
    a single one). `asked_rows` is None where all were asked for. `measured` says in words what the figures are:
    `figure` that of a step (`shown` by the trainer's name), and `validation_figure` that of the last validation, None
    where nothing was validated.
    """

    recipe: str
    arm: str
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


def result(recipe: str, arm: str, asked_rows: int | None, runs: Sequence[Run], start: Run | None) -> ArmResult:
    """The result of an arm.

    Args:
        recipe: As the experiment names it.
        arm: The same.
        asked_rows: The most that it was to train on.
        runs: One a seed, all at their end.
        start: What the first of them has started from, where that was trained for it.
    """
    trainer = runs[0].trainer
    curves = [
        [found[trainer.shown] for _, found in sorted(run.metrics().items()) if trainer.shown in found] for run in runs
    ]
    lasts = [curve[-1] for curve in curves]
    validations = [found[-1] for run in runs if (found := _validations(run))]
    return ArmResult(
        recipe=recipe,
        arm=arm,
        seeds=len(runs),
        rows=runs[0].rows,
        asked_rows=asked_rows,
        steps=min(max(run.metrics()) for run in runs),
        measured=measured(runs[0], start),
        shown=trainer.shown,
        figure=trainer.figure,
        first=statistics.fmean(curve[0] for curve in curves),
        last=statistics.fmean(lasts),
        last_deviation=_deviation(lasts),
        validation_figure=trainer.validation_figure if validations else None,
        validation=statistics.fmean(validations) if validations else None,
        validation_deviation=_deviation(validations),
    )


def measured(run: Run, start: Run | None) -> str:
    """What the figures of a run are, in words, and what it starts from."""
    if run.recipe.trainer == "grpo":
        told = _reward(run)
    elif run.recipe.trainer == "sft":
        told = f"loss of {run.recipe.name} on what it imitates; it writes no outputs, so it has no reward"
    else:
        told = "loss over triplets"
    return told if start is None else f"{told}; from {start.recipe.name} on {start.rows:,} rows"


def _reward(run: Run) -> str:
    told = f"reward {run.recipe.reward} of a step's outputs"
    settings = {key.rpartition(".")[2]: value for key, value in run.overrides.items() if REWARD_SETTING in key}
    if settings:
        told += ", with " + ", ".join(f"{name} {value}" for name, value in settings.items())
    if run.judge is not None:
        asked = run.asked["judge"]
        apart = [asked[name] for name in run.judge.models if name != "model"]
        told += f", judged by {' and '.join(dict.fromkeys(apart or [asked['model']]))}"
    return told


def _validations(run: Run) -> list[float]:
    found = (validated(run.recipe.trainer, metrics) for _, metrics in sorted(run.metrics().items()))
    return [value for value in found if value is not None]


def _deviation(values: list[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None
