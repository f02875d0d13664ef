"""The trainers, and what the launch must know of each: GRPO and SFT are verl's own, contrastive is ours."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pipelines.train.recipe import Overrides, Recipe, TrainerName, as_arguments, as_number, load_recipe
from pipelines.train.runs import CHECKPOINTS, CONFIG, MODEL, NOTE, Metrics, read_config, read_note

_TORCHRUN = ("torch.distributed.run", "--standalone", "--nnodes=1")
_VALIDATED_REWARD = r"val-core/.*/reward/mean@\d+"
# What is shown of a step, by the trainers' names.
_OF_A_STEP = {
    "reward": "critic/score/mean",
    "loss": "train/loss",
    "validation loss": "val/loss",
    "balanced accuracy": "validation/balanced_accuracy",
    "AUC of mismatched emotion": "validation/auc/mismatched_emotion",
    "within a topic": "validation/auc/mismatched_emotion/same_topic",
    "entropy": "actor/entropy",
    "KL": "actor/kl_loss",
    "tokens": "response_length/mean",
    "seconds": "perf/time_per_step",
}

Figure = Literal["reward", "loss", "balanced accuracy"]


class Trainer(NamedTuple):
    """One of them. Keys are those of its own configuration.

    `model` is the key of what it starts from, `train` and `validation` those of its files, `seeds` all by which it
    draws. `shown` is the metric of a step that says how a run goes, and `figure` what that is; `validated` matches
    those of a validation, and `validation_figure` is what they are. `config` is the name of verl's configuration, None
    for ours; `weights` where they lie in a checkpoint of verl's.
    """

    model: str
    train: str
    validation: str
    steps: str
    seeds: tuple[str, ...]
    shown: str
    figure: Figure
    validated: str
    validation_figure: Figure
    smoke: str
    config: Literal["ppo_trainer", "sft_trainer_engine"] | None
    weights: str = ""


TRAINERS: dict[TrainerName, Trainer] = {
    "grpo": Trainer(
        model="actor_rollout_ref.model.path",
        train="data.train_files",
        validation="data.val_files",
        steps="trainer.total_training_steps",
        seeds=(
            "data.seed",
            "actor_rollout_ref.rollout.seed",
            "actor_rollout_ref.actor.data_loader_seed",
            "actor_rollout_ref.actor.fsdp_config.seed",
            "actor_rollout_ref.ref.fsdp_config.seed",
        ),
        shown="critic/score/mean",
        figure="reward",
        validated=_VALIDATED_REWARD,
        validation_figure="reward",
        smoke="a tiny model that writes the form badly learns to write it, and the reward rises; it learns no empathy",
        config="ppo_trainer",
        weights="actor",
    ),
    "sft": Trainer(
        model="model.path",
        train="data.train_files",
        validation="data.val_files",
        steps="trainer.total_training_steps",
        seeds=("+data.seed", "trainer.seed", "engine.seed"),
        shown="train/loss",
        figure="loss",
        validated="val/loss",
        validation_figure="loss",
        smoke="the loss of a tiny model on what it imitates falls; it writes nothing, and so has no reward",
        config="sft_trainer_engine",
    ),
    "contrastive": Trainer(
        model="start",
        train="train",
        validation="validation",
        steps="steps",
        seeds=("seed",),
        shown="train/loss",
        figure="loss",
        validated="validation/balanced_accuracy",
        validation_figure="balanced accuracy",
        smoke="the loss of a tiny encoder falls; what it has learnt of few texts, and its T, say nothing",
        config=None,
    ),
}


class Difference(NamedTuple):
    """A number of a paper's, and what stands in its place."""

    key: str
    paper: Any
    here: Any


def validation_of(trainer: TrainerName, metrics: Metrics) -> float | None:
    """The figure of a validation among the metrics of a step; None where there was no validation."""
    matches = re.compile(TRAINERS[trainer].validated).fullmatch
    return next((value for key, value in metrics.items() if matches(key)), None)


def describe_step(step: int, steps: int | None, metrics: Mapping[str, float]) -> str:
    """A line for a step of a training run; step 0 is the validation before the first."""
    figures = [f"{name} {metrics[key]:.3g}" for name, key in _OF_A_STEP.items() if key in metrics]
    figures += [f"validation {value:.3g}" for key, value in metrics.items() if re.fullmatch(_VALIDATED_REWARD, key)]
    of = "" if steps is None else f" of {steps:,}"
    return f"step {step:,}{of}: " + ", ".join(figures)


def describe_course(trainer: TrainerName, metrics: Mapping[int, Metrics]) -> str:
    """How a run went, in a line: the figure of its first step and of its last; empty before there is one."""
    of = TRAINERS[trainer]
    figures = [metrics[step][of.shown] for step in sorted(metrics) if of.shown in metrics[step]]
    name = "mean reward" if of.figure == "reward" else of.figure
    return f"{name} of a step: {figures[0]:.2f} at first, {figures[-1]:.2f} at last" if figures else ""


def folder_settings(trainer: TrainerName, run: Path, rollouts: Path) -> Overrides:
    """What a trainer must know of the folder of a run."""
    if trainer == "contrastive":
        return {"out": str(run / MODEL)}
    settings = {"trainer.experiment_name": run.name, "trainer.default_local_dir": str(run / CHECKPOINTS)}
    return settings | ({"trainer.rollout_data_dir": str(rollouts)} if trainer == "grpo" else {})


def command(trainer: TrainerName, overrides: Mapping[str, Any], run: Path, metrics: Path) -> list[str]:
    """What Python is to run, its options included."""
    if trainer == "grpo":
        return ["-m", "verl.trainer.main_ppo", *as_arguments(overrides)]
    if trainer == "sft":
        workers = f"--nproc_per_node={overrides['trainer.n_gpus_per_node']}"
        return ["-m", *_TORCHRUN, workers, "-m", "verl.trainer.sft_trainer", *as_arguments(overrides)]
    return ["-m", "pipelines.train.contrastive", str(run / CONFIG), str(metrics)]


def last_step(run: Path) -> int:
    """The step of verl's last checkpoint that is whole; 0 without one."""
    path = run / CHECKPOINTS / "latest_checkpointed_iteration.txt"
    text = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    return int(text) if text.isdecimal() else 0  # empty where the machine went down at it


def find_differences(recipe: Recipe, config: Mapping[str, Any]) -> list[Difference]:
    """The numbers of the paper for which something else stands in a composed configuration, in the paper's order: what
    the recipe sets (`paper`), and what the trainer makes of it or has by default (`implied`).

    A model of a run of ours counts as what that run, or the first before it, has started from: E's policy starts from
    its warm start, as in the paper. C's starts from the base model there.
    """
    differences = []
    for written, paper in (recipe.paper | recipe.implied).items():
        key = written.removeprefix("+")
        here: Any = config
        for part in key.split("."):
            here = here.get(part) if isinstance(here, Mapping) else None
        if key == TRAINERS[recipe.trainer].model and isinstance(here, str) and not recipe.scratch:
            here = _base_model(here)
        if as_number(here) != as_number(paper):
            differences.append(Difference(key, paper, here))
    return differences


def run_differences(run: Path) -> list[Difference]:
    """Those of the run in a folder; none before its configuration is composed."""
    config = read_config(run)
    return find_differences(load_recipe(read_note(run)["recipe"]), config) if config else []


def _base_model(model: str) -> str:
    """What the weights of a model were first of all, as far as runs say."""
    run = Path(model).parent
    if Path(model).name != MODEL or not (run / NOTE).exists():
        return model
    note = read_note(run)
    before = note["overrides"].get(TRAINERS[load_recipe(note["recipe"]).trainer].model)
    return model if before is None else _base_model(before)
