"""The result of an ablation of an experiment, and what its figures are."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from pipelines.train.launch import Run
from pipelines.train.recipe import REWARD_SETTING
from pipelines.train.trainers import Figure, validation_of


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


def summarise(recipe: str, ablation: str, asked_rows: int | None, runs: Sequence[Run], start: Run | None) -> Result:
    """The result of an ablation.

    Args:
        recipe: As the experiment names it.
        ablation: The same.
        asked_rows: The most that it was to train on.
        runs: One a seed, all at their end.
        start: What the first of them has started from, if that was trained for it.
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
