"""A step of a run of training, in a line."""

import re
from collections.abc import Mapping

_OF_A_STEP = {
    "reward": "critic/score/mean",
    "loss": "train/loss",
    "validation loss": "val/loss",
    "balanced accuracy": "validation/balanced_accuracy",
    "entropy": "actor/entropy",
    "KL": "actor/kl_loss",
    "tokens": "response_length/mean",
    "seconds": "perf/time_per_step",
}


_VALIDATED = re.compile(r"val-core/.*/reward/mean@\d+")


def training_step(step: int, steps: int | None, metrics: Mapping[str, float]) -> str:
    """A line for a step of a training run; step 0 is the validation before the first."""
    told = [f"{name} {metrics[key]:.3g}" for name, key in _OF_A_STEP.items() if key in metrics]
    told += [f"validation {value:.3g}" for key, value in metrics.items() if _VALIDATED.fullmatch(key)]
    of = "" if steps is None else f" of {steps:,}"
    return f"step {step:,}{of}: " + ", ".join(told)
