"""The trainers there are, and what the launch must know of each: GRPO and SFT are verl's own, contrastive is ours."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pipelines.train.recipe import Overrides, TrainerName, as_arguments
from pipelines.train.runs import CHECKPOINTS, MODEL, Metrics

_TORCHRUN = ("torch.distributed.run", "--standalone", "--nnodes=1")


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
        validated=r"val-core/.*/reward/mean@\d+",
        validation_figure="reward",
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
        config=None,
    ),
}


def validated(trainer: TrainerName, metrics: Metrics) -> float | None:
    """The figure of a validation among the metrics of a step; None where there was none."""
    matches = re.compile(TRAINERS[trainer].validated).fullmatch
    return next((value for key, value in metrics.items() if matches(key)), None)


def of_the_run(trainer: TrainerName, run: Path, rollouts: Path) -> Overrides:
    """What a trainer must be told of the folder of a run."""
    if trainer == "contrastive":
        return {"out": str(run / MODEL)}
    told = {"trainer.experiment_name": run.name, "trainer.default_local_dir": str(run / CHECKPOINTS)}
    return told | ({"trainer.rollout_data_dir": str(rollouts)} if trainer == "grpo" else {})


def command(trainer: TrainerName, found: Mapping[str, Any], metrics: Path) -> list[str]:
    """What Python is to run, its options included."""
    if trainer == "grpo":
        return ["-m", "verl.trainer.main_ppo", *as_arguments(found)]
    if trainer == "sft":
        workers = f"--nproc_per_node={found['trainer.n_gpus_per_node']}"
        return ["-m", *_TORCHRUN, workers, "-m", "verl.trainer.sft_trainer", *as_arguments(found)]
    return ["-m", "pipelines.train.contrastive", f"--metrics={metrics}", *_as_options(found)]


def last_step(run: Path) -> int:
    """The step of verl's last checkpoint that is whole; 0 where there is none."""
    told = run / CHECKPOINTS / "latest_checkpointed_iteration.txt"
    written = told.read_text(encoding="utf-8").strip() if told.exists() else ""
    return int(written) if written.isdecimal() else 0  # empty where the machine went down at it


def last_weights(trainer: TrainerName, run: Path) -> Path:
    """The weights of verl's last checkpoint, to be merged."""
    return run / CHECKPOINTS / f"global_step_{last_step(run)}" / TRAINERS[trainer].weights


def _as_options(found: Mapping[str, Any]) -> list[str]:
    options = []
    for key, value in found.items():
        options += [f"--{key.replace('_', '-')}", *map(str, value if isinstance(value, list) else [value])]
    return options
