"""Runs of training as assets, one a recipe: in jobs of their own, for nobody trains by the way.

The trainer runs in `.venv-train`, as a process of its own (`pipelines.train.launch`). As it goes, figures of its steps
are observations of the asset, which the web UI plots over time; at the end its materialisation says what it came to.
"""

import json
from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from pipelines.defs.allowance import allow
from pipelines.defs.plots import drawn
from pipelines.defs.presentation import group_of
from pipelines.defs.releases import release
from pipelines.defs.resources import HomeResource, under_way
from pipelines.defs.samples import records
from pipelines.errors import GongqingError, TrainingFailed
from pipelines.train.alarms import curve_of
from pipelines.train.launch import Run
from pipelines.train.page import Outcome, all_curves, draw, report
from pipelines.train.prepare import prepare
from pipelines.train.recipe import load_recipe, parse_settings, recipe_names
from pipelines.train.runs import SCORED, TENSORBOARD, Metrics, describe_rows, list_checkpoints, read_metrics, read_note
from pipelines.train.trainers import describe_step, run_differences

GROUP = group_of("training_runs")
_POOL = "training"  # a machine trains one model at a time
_MOST_OBSERVATIONS = 100  # of a run, or about: the event log keeps them

# What of a step is plotted, by the trainers' names, or by that of a term of the reward.
FIGURES = {
    "reward": "critic/score/mean",
    "loss": "train/loss",
    "KL": "actor/kl_loss",
    "length": "response_length/mean",
    "entropy": "actor/entropy",
    "judge_ok": "judge_ok",
}


class Judging(StrEnum):
    """Who may judge, or nobody: a config takes no Literal that may be left out."""

    openai = "openai"
    replay = "replay"
    none = "none"


class TrainConfig(dg.Config):
    """A run, as `gongqing train` has it (docs/training.md)."""

    preset: Literal["gpu", "cpu_smoke"]  # to be named: nothing trains because somebody materialised everything
    ablation: str = ""
    release: str | None = None
    name: str = ""
    start: str | None = None
    encoder: str | None = None
    provider: Judging | None = None
    budget: float | None = None
    settings: list[str] = Field(default_factory=list)  # KEY=VALUE


class _Steps:
    """Reports the steps of a run as they are made, some of them as observations."""

    def __init__(self, context: dg.AssetExecutionContext, run: Run) -> None:
        self._context, self._steps = context, run.steps
        self._verdicts = _VerdictShare(run.folder / SCORED)
        self._verdicts()  # what an earlier start has scored
        self._last = 0

    def __call__(self, step: int, metrics: Metrics) -> None:
        share = self._verdicts()
        metrics = metrics | ({} if share is None else {"judge_ok": share})
        self._context.log.info(describe_step(step, self._steps, metrics))
        figures = {name: metrics[key] for name, key in FIGURES.items() if key in metrics}
        every = max(1, (self._steps or step) // _MOST_OBSERVATIONS)
        if figures and (step >= self._last + every or step == self._steps):
            self._last = step
            self._context.log_event(dg.AssetObservation(self._context.asset_key, metadata={"step": step, **figures}))


class _VerdictShare:
    """The share of outputs with a verdict, among those that were scored since the last call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[Path, int] = {}

    def __call__(self) -> float | None:
        """None where nothing was scored, or nobody judges."""
        verdicts = [terms["judge_ok"] for terms in self._terms() if "judge_ok" in terms]
        return sum(verdicts) / len(verdicts) if verdicts else None

    def _terms(self) -> Iterator[dict[str, float]]:
        for path in sorted(self._folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):  # it is being written
                        break
                    self._offsets[path] = self._offsets.get(path, 0) + len(line)
                    yield json.loads(line)["terms"]


def _prepared(name: str, config: TrainConfig, home: HomeResource) -> Run:
    return prepare(
        home.folder,
        load_recipe(name),
        config.preset,
        **config.model_dump(include={"ablation", "release", "name", "start", "encoder"}),
        provider=None if config.provider is None else config.provider.value,
        budget=None if config.budget is None else Decimal(str(config.budget)),
        rewards=home.settings().rewards,
        settings=parse_settings(config.settings),
    )


def _asset(name: str) -> dg.AssetsDefinition:
    @dg.asset(
        name=f"train_{name}",
        group_name=GROUP,
        deps=[release],
        description=f"{load_recipe(name).about}: a run of `gongqing train {name}` (docs/training.md).",
        kinds={"verl"},
        pool=_POOL,
    )
    def trained(
        context: dg.AssetExecutionContext, config: TrainConfig, home: dg.ResourceParam[HomeResource]
    ) -> dg.MaterializeResult[None]:
        if config.budget is not None:  # of the judge: it counts in full
            # Under a name of its own: what the run itself asks for is settled when it ends, and this never is.
            judging = f"judge of {name} in run {context.run.run_id}"
            budget = Decimal(str(config.budget))
            allow(home.folder, home.settings().llm, judging, budget, under_way(context.instance))
        try:
            run = _prepared(name, config, home)
            model = run.train(_Steps(context, run), lambda lines: context.log.info("\n".join(lines)))
            shown = _described(run.folder, report(home.store(), run.folder))
        except TrainingFailed as error:
            raise _failure(home, run.folder, error) from error
        except GongqingError as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        return dg.MaterializeResult(metadata=shown | {"model": dg.MetadataValue.path(model)})

    return trained


def _failure(home: HomeResource, run: Path, error: TrainingFailed) -> dg.Failure:
    """The failure of a trainer with what it leaves; its last words stay also where that cannot be read or written."""
    words, shown = str(error), None
    try:
        shown = _described(run, report(home.store(), run))
    except (GongqingError, OSError) as other:
        words = f"{words}\n{other}"
    return dg.Failure(words, metadata=shown, allow_retries=False)


def _described(run: Path, outcome: Outcome) -> dict[str, Any]:
    """The metadata of a run that has come to its end, or failed: figures, and where everything lies. Of its rollouts
    the means of their rewards, and no text: that stands in the table and on the page.
    """
    note, metrics, means = read_note(run), read_metrics(run), outcome.terms
    shown: dict[str, Any] = {
        "run": run.name,
        "preset": note["preset"],
        "ablation": note.get("ablation") or "the paper's own set-up",
        "release": note["release"]["name"],
        "content": note["release"]["content"],
        "steps": max(metrics, default=0),
    }
    if lines := describe_rows(run):
        shown["rows"] = records({"of the rows": line} for line in lines)
    for name, key in FIGURES.items():
        if values := list((curve_of(metrics, key) or means.get(key, {})).values()):
            shown |= {f"{name}_first": values[0], name: values[-1]}
    if means:
        shown["terms_of_the_reward"] = records(
            {"term": name, "first": curve[min(curve)], "last": curve[max(curve)]} for name, curve in means.items()
        )
    for title, curves in all_curves(metrics, means):
        if (picture := drawn(partial(draw, title=title, curves=curves))) is not None:
            shown[f"plot: {title}"] = dg.MetadataValue.md(picture)
    shown["alarms_raised"] = len(outcome.alarms)
    shown["alarms"] = records(
        {"alarm": one.name, "since": one.since, "what": one.what, "to do": one.hint} for one in outcome.alarms
    )
    shown["page"] = dg.MetadataValue.path(outcome.page)
    shown["rollouts"] = f"rollouts/{run.name}@{outcome.rollouts.version}" if outcome.rollouts else "none"
    shown["tensorboard"] = dg.MetadataValue.path(run / TENSORBOARD)
    shown["checkpoints"] = records({"step": step, "folder": str(path)} for step, path in list_checkpoints(run))
    if judge := note.get("judge"):
        shown["judge"] = dg.MetadataValue.json(judge)
    shown["not_as_in_the_paper"] = records(
        {"setting": one.key, "paper": str(one.paper), "here": str(one.here)} for one in run_differences(run)
    )
    return shown


trainings = [_asset(name) for name in recipe_names()]
training_jobs = [
    dg.define_asset_job(
        f"training_{name}",
        selection=dg.AssetSelection.assets(f"train_{name}"),
        description=f"{load_recipe(name).about}, on the current release or the one that is named.",
    )
    for name in recipe_names()
]
