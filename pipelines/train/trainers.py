"""The trainers there are, and what the launch must know of each: GRPO and SFT are verl's own, contrastive is ours."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pipelines.train.recipe import Overrides, TrainerName, as_arguments
from pipelines.train.runs import CHECKPOINTS, checkpoints

_TORCHRUN = ("torch.distributed.run", "--standalone", "--nnodes=1")


class Trainer(NamedTuple):
    """One of them. Keys are those of its own configuration.

    `model` is the key of what it starts from, `train` and `validation` those of its files; `shown` the metric that says
    how a run went; `config` the name of verl's configuration, None for ours; `weights` where they lie in a checkpoint
    of verl's.
    """

    model: str
    train: str
    validation: str
    steps: str
    shown: str
    config: Literal["ppo_trainer", "sft_trainer_engine"] | None
    weights: str = ""


TRAINERS: dict[TrainerName, Trainer] = {
    "grpo": Trainer(
        model="actor_rollout_ref.model.path",
        train="data.train_files",
        validation="data.val_files",
        steps="trainer.total_training_steps",
        shown="critic/score/mean",
        config="ppo_trainer",
        weights="actor",
    ),
    "sft": Trainer(
        model="model.path",
        train="data.train_files",
        validation="data.val_files",
        steps="trainer.total_training_steps",
        shown="train/loss",
        config="sft_trainer_engine",
    ),
    "contrastive": Trainer(
        model="start",
        train="train",
        validation="validation",
        steps="steps",
        shown="train/loss",
        config=None,
    ),
}


def of_the_run(trainer: TrainerName, run: Path, rollouts: Path) -> Overrides:
    """What a trainer must be told of the folder of a run."""
    if trainer == "contrastive":
        return {"out": str(run / CHECKPOINTS)}
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


def last_weights(trainer: TrainerName, run: Path) -> Path:
    """The weights of the last checkpoint: of verl's, to be merged; of ours, a folder that `transformers` loads."""
    if trainer == "contrastive":
        return run / CHECKPOINTS / "model"
    _, last = checkpoints(run)[-1]
    return last / TRAINERS[trainer].weights


def _as_options(found: Mapping[str, Any]) -> Sequence[str]:
    return [f"--{key.replace('_', '-')}={value}" for key, value in found.items()]
