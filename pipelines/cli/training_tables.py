"""How runs of training are shown in the terminal: settings that differ from the paper, results, alarms."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from pipelines.cli.render import TextTable, visible
from pipelines.train.alarms import Alarm
from pipelines.train.experiment import Result
from pipelines.train.trainers import Difference

# The figure that says how a run of training went, by the trainers' names (`pipelines.train.trainers`).
SHOWN = {"critic/score/mean": "mean reward", "train/loss": "loss"}


def differences(settings: list[Difference]) -> Table:
    """The settings of a recipe that are not as in its paper."""
    table = TextTable("setting", "paper", "here", title="not as in the paper")
    for one in settings:
        table.add_row(one.key, str(one.paper), str(one.here))
    return table


def results(outcomes: Sequence[Result]) -> Table:
    """The ablations of an experiment; ± is the standard deviation over the seeds. Each figure has columns of its own,
    which are empty for an ablation without it: a loss is no reward. Below stands what each measures.
    """
    lines = [f"{f'{one.recipe} {one.ablation}'.strip()}: {one.measured}" for one in outcomes]
    if fewer := [one for one in outcomes if one.asked_rows is not None and one.rows < one.asked_rows]:
        lines.insert(0, f"{fewer[0].asked_rows:,} rows were asked for, and the release has {fewer[0].rows:,}")
    figures = list(dict.fromkeys(one.figure for one in outcomes))
    validations = list(dict.fromkeys(one.validation_figure for one in outcomes if one.validation_figure))
    counts = ["seeds", "rows", "steps", *(f"{figure}, {when}" for figure in figures for when in ("first", "last"))]
    counts += [f"validation, {figure}" for figure in validations]
    caption = visible("\n".join(lines))
    table = TextTable(
        "recipe", "ablation", *counts, right=counts, title="ablations, on equal rows and seeds", caption=caption
    )
    table.caption_justify = "left"
    for one in outcomes:
        cells = [one.recipe, one.ablation, str(one.seeds), f"{one.rows:,}", f"{one.steps:,}"]
        for figure in figures:
            cells += [f"{one.first:.3f}", _spread(one.last, one.last_deviation)] if one.figure == figure else ["", ""]
        for figure in validations:
            validation = one.validation if one.validation_figure == figure else None
            cells.append("" if validation is None else _spread(validation, one.validation_deviation))
        table.add_row(*cells)
    return table


def _spread(mean: float, deviation: float | None) -> str:
    return f"{mean:.3f}" if deviation is None else f"{mean:.3f} ± {deviation:.3f}"


def describe_service(service: str | Mapping[str, str]) -> str:
    """The service that a training run asks: the folder of its encoder, or its judge, word by word."""
    return service if isinstance(service, str) else ", ".join(f"{name} {value}" for name, value in service.items())


def alarm(raised: Alarm) -> str:
    """Something to look at in a training run."""
    return f"look at this: {raised.what}, since step {raised.since:,}\n  {raised.hint}"
