"""Runs of training as assets, one a recipe: in jobs of their own, for nobody trains by the way.

Each runs through Pipes as a process of its own (`pipelines.train.piped`). As it goes, figures of its steps are
observations of the asset, which the web UI plots over time; at the end its materialisation says what it was made of.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from pipelines.defs.allowance import allow
from pipelines.defs.metadata import records
from pipelines.defs.plots import drawn
from pipelines.defs.releases import release
from pipelines.defs.resources import HomeResource, under_way
from pipelines.settings import ROOT
from pipelines.train.alarms import curve_of
from pipelines.train.page import all_curves, draw
from pipelines.train.recipe import load_recipe, recipe_names
from pipelines.train.runs import NOTE, TENSORBOARD, describe_rows, list_checkpoints, read_metrics, read_note
from pipelines.train.trainers import describe_step, run_differences

GROUP = "training_runs"
_POOL = "training"  # a machine trains one model at a time
_MOST_OBSERVATIONS = 100  # of a run, or about: the event log is never pruned
_SECONDS = 1.0  # between two reads of the messages
_PATIENCE = 60  # seconds that a run has to end its processes

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

    preset: Literal["gpu", "cpu_smoke"] = "gpu"
    ablation: str = ""
    release: str | None = None
    name: str = ""
    start: str | None = None
    encoder: str | None = None
    provider: Judging | None = None
    budget: float | None = None
    settings: list[str] = Field(default_factory=list)  # KEY=VALUE


class _RunMessages:
    """The messages of a run so far."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context = context
        self._read = 0
        self._steps: int | None = None
        self._last = 0
        self.run: Path | None = None
        self.failed = ""
        self.outcome: dict[str, Any] = {}

    def report_new(self, session: dg.PipesSession) -> None:
        """Passes new messages on to Dagster."""
        messages = session.get_custom_messages()
        for message in messages[self._read :]:
            if "step" in message:
                self._step(message["step"], message["metrics"])
            elif "run" in message:
                self.run, self._steps = Path(message["run"]), message["steps"]
            elif "rows" in message:
                self._context.log.info("\n".join(message["rows"]))
            elif "failed" in message:
                self.failed = "\n".join(filter(None, (self.failed, message["failed"])))
            else:
                self.outcome = message
        self._read = len(messages)

    def _step(self, step: int, metrics: dict[str, float]) -> None:
        self._context.log.info(describe_step(step, self._steps, metrics))
        figures = {name: metrics[key] for name, key in FIGURES.items() if key in metrics}
        every = max(1, (self._steps or step) // _MOST_OBSERVATIONS)
        if figures and (step >= self._last + every or step == self._steps):
            self._last = step
            self._context.log_event(dg.AssetObservation(self._context.asset_key, metadata={"step": step, **figures}))


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
        messages = _RunMessages(context)
        extras = {**config.model_dump(mode="json"), "recipe": name, "home": str(home.folder)}
        ways = dg.PipesTempFileContextInjector(), dg.PipesTempFileMessageReader()
        # Not PipesSubprocessClient: that hands over the messages of a process when it has ended.
        with dg.open_pipes_session(context, *ways, extras=extras) as session, _running(session) as process:
            while process.poll() is None:
                messages.report_new(session)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_SECONDS)
        messages.report_new(session)
        shown = _described(messages.run, messages.outcome) if messages.run and (messages.run / NOTE).exists() else {}
        if process.returncode:
            what = messages.failed or f"the process that trains ended with code {process.returncode}: see its output"
            raise dg.Failure(what, metadata=shown, allow_retries=False)
        return dg.MaterializeResult(metadata=shown)

    return trained


@contextmanager
def _running(session: dg.PipesSession) -> Iterator["subprocess.Popen[bytes]"]:
    """The process that trains. Where the run is ended in the web UI, it is asked to end its own processes."""
    environment = {**os.environ, **session.get_bootstrap_env_vars()}
    process = subprocess.Popen([sys.executable, "-m", "pipelines.train.piped"], env=environment, cwd=ROOT)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _described(run: Path, outcome: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a run that has come to its end, or failed: figures, and where everything lies. Of its rollouts
    the means of their rewards, and no text: that stands in the table and on the page.
    """
    note, metrics = read_note(run), read_metrics(run)
    means = {name: {int(step): mean for step, mean in pairs} for name, pairs in outcome.get("terms", {}).items()}
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
    for one in all_curves(metrics, means):
        if (picture := drawn(partial(draw, curves=one))) is not None:
            shown[f"plot: {one.title}"] = dg.MetadataValue.md(picture)
    if outcome:
        shown["alarms_raised"] = len(outcome["alarms"])
        shown["alarms"] = records(
            {"alarm": one["name"], "since": one["since"], "what": one["what"], "to do": one["hint"]}
            for one in outcome["alarms"]
        )
        shown["page"] = dg.MetadataValue.path(outcome["page"])
        shown["rollouts"] = f"rollouts/{run.name}@{outcome['rollouts']}" if outcome["rollouts"] else "none"
    if "model" in outcome:
        shown["model"] = dg.MetadataValue.path(outcome["model"])
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
