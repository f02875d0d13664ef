"""Composes verl's configuration with verl's own code, and validates it. Runs in `.venv-train`.

    python -m pipelines.train.compose CONFIG KEY=VALUE…

CONFIG is `ppo_trainer` (GRPO) or `sft_trainer_engine` (SFT).

Prints the configuration as JSON. What verl or we refuse ends it with exit code 2 and `{"refused": …}`, one line of what
is wrong. What verl prints besides goes to stderr. `run_module` is the side of `.venv`.
"""

import contextlib
import difflib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

from pipelines.core.files import write_whole
from pipelines.errors import GongqingError, RequestError, TrainingFailed
from pipelines.train.recipe import KINDS, SETTINGS_PLACE, Kind, fits, kind_of
from pipelines.train.trainers import TRAINERS

# The old names still compose in verl 0.9, and are ignored: a run would train on another reward.
LEGACY = ("custom_reward_function.", "reward_model.", "reward_manager")
_WORDS = (None, "after_each_epoch")  # what verl takes in place of a number
# Numbers of which verl says no kind: by default they are null.
_UNTYPED = ("data.seed", "+data.seed", "data.val_batch_size", "trainer.total_training_steps")
# Of each at least one: verl would divide by nothing, train on nothing and call it done, or keep no checkpoint, not even
# the last.
_COUNTS = (
    *("data.train_batch_size", "data.max_prompt_length", "data.max_response_length", "data.max_length"),
    *("data.micro_batch_size_per_gpu", "actor_rollout_ref.rollout.n", "actor_rollout_ref.actor.ppo_mini_batch_size"),
    *("actor_rollout_ref.rollout.agent.num_workers", "reward.num_workers"),
    *("trainer.nnodes", "trainer.n_gpus_per_node", "trainer.total_training_steps", "trainer.total_epochs"),
    "trainer.save_freq",
)
_NOT_NEGATIVE = (
    *("actor_rollout_ref.rollout.temperature", "actor_rollout_ref.actor.optim.lr", "optim.lr"),
    *(key for trainer in TRAINERS.values() for key in trainer.seeds),
)
_LEAST = dict.fromkeys(_COUNTS, 1) | dict.fromkeys(_NOT_NEGATIVE, 0)
# What verl makes of the configuration in its workers alone, after minutes: the parts that need no model.
_PARTS = {
    "ppo_trainer": ("algorithm", "actor_rollout_ref.rollout"),
    "sft_trainer_engine": ("engine", "optim", "checkpoint", "profiler"),
}


def run_module(module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> bytes:
    """The output of `pipelines.train.compose` or `.lengths`, which run in `.venv-train`. Its stderr lies in `log` if it
    is refused.

    Raises RequestError for what it, or verl, refuses, in one line.
    """
    from pipelines.train.services import PYTHON  # what it imports is not in `.venv-train`

    process = subprocess.run(
        [str(PYTHON), "-m", module, *arguments], check=False, env=dict(environment), capture_output=True
    )
    if not process.returncode:
        return process.stdout
    refusal = json.loads(process.stdout) if process.returncode == RequestError.exit_code and process.stdout else {}
    if "hint" in refusal:
        raise RequestError(refusal["refused"], where=refusal["where"], hint=refusal["hint"])
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(log, process.stderr)
    if refusal:
        what = f"verl refuses the configuration: {refusal['refused']}"
        raise RequestError(what, where=log, hint=f"look at {SETTINGS_PLACE}")
    raise TrainingFailed(
        f"{module} ended with code {process.returncode}", where=log, hint="mend what it names, or repeat make train-env"
    )


def compose_config(name: str, arguments: Sequence[str]) -> Any:
    """verl's configuration of this name with these overrides. Raises ValueError, in one line, for what it, or we,
    refuse.
    """
    keys = [argument.partition("=")[0] for argument in arguments]
    for key in keys:
        if key.lstrip("+").startswith(LEGACY):
            raise ValueError(f"{key} is ignored by verl 0.9: its keys begin with reward.")
    from hydra import compose, initialize_config_module
    from omegaconf import OmegaConf

    try:
        with initialize_config_module("verl.trainer.config", version_base=None):
            defaults = compose(name)
            _refuse_unknown(defaults, [key for key in keys if not key.startswith("+")])
            config = compose(name, overrides=list(arguments))
        _refuse_other_kinds(defaults, config, keys)
        _validate(name, config)
        return OmegaConf.to_container(config, resolve=True)
    except Exception as error:  # whatever verl's own code happens to raise
        raise ValueError(_one_line(error)) from error


def print_result(work: Callable[[], Any]) -> None:
    """Print the result of a command as JSON; of what it refuses `refused`, with `where` and `hint` where they are
    known, and end with exit code 2.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):  # verl prints that all is well
            result = work()
    except (GongqingError, ValueError) as error:
        refusal = {"refused": str(error)}
        if isinstance(error, GongqingError):
            refusal = {"refused": error.what, "where": str(error.where), "hint": error.hint}
        sys.stdout.write(json.dumps(refusal))
        sys.exit(RequestError.exit_code)
    sys.stdout.write(json.dumps(result, default=str))


def _refuse_unknown(defaults: Any, keys: Sequence[str]) -> None:
    from omegaconf import OmegaConf

    names = list(_names(OmegaConf.to_container(defaults, resolve=False)))
    for key in keys:
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f": did you mean {near[0]}?" if near else ", which one + in front would add"
            raise ValueError(f"there is no key {key}{hint}")


def _names(config: Any, before: str = "") -> Iterator[str]:
    for key, value in config.items() if isinstance(config, dict) else ():
        yield before + key
        yield from _names(value, f"{before}{key}.")


def _refuse_other_kinds(defaults: Any, config: Any, keys: Sequence[str]) -> None:
    """verl checks few kinds itself: a text in place of a number would only fail wherever it is first used."""
    from omegaconf import OmegaConf

    for key in keys:
        value = OmegaConf.select(config, key.removeprefix("+"))
        if value in _WORDS:
            continue
        if (wanted := _wanted_kind(defaults, key)) and not fits(value, wanted):
            raise ValueError(f"{key} is to be {wanted}, and {value!r} is not")
        if key in _LEAST and float(value) < _LEAST[key]:
            raise ValueError(f"{key} is {value}, and has to be {_LEAST[key]} or more")


def _wanted_kind(defaults: Any, key: str) -> Kind | None:
    """The kind of number that a key of verl's holds: as the class of its part says, or else its default."""
    from hydra.utils import get_class
    from omegaconf import OmegaConf

    if key in _UNTYPED:
        return "a whole number"
    if key.startswith("+"):
        return None
    parent, _, name = key.rpartition(".")
    part = OmegaConf.select(defaults, parent) if parent else defaults
    target = part.get("_target_")
    hint = get_type_hints(get_class(target)).get(name) if target else None
    types = set(get_args(hint) or (hint,)) - {type(None)}
    if types and types <= set(KINDS):
        return next(kind for one, kind in reversed(KINDS.items()) if one in types)  # the widest
    default = OmegaConf.to_container(part, resolve=False).get(name)
    return None if isinstance(default, str) else kind_of(default)


def _validate(name: str, config: Any) -> None:
    from omegaconf import OmegaConf
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    if name == "ppo_trainer":
        get_adv_estimator_fn(config.algorithm.adv_estimator)
        validate_config(config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config))
        if config.trainer.val_only:
            raise ValueError("trainer.val_only is true: nothing would be trained")
    else:
        if config.trainer.nnodes != 1:
            raise ValueError(f"trainer.nnodes is {config.trainer.nnodes}: SFT is started on this machine alone")
        batch, gpus = config.data.train_batch_size, config.trainer.n_gpus_per_node
        if batch % gpus:  # verl would round it down
            raise ValueError(f"data.train_batch_size ({batch}) is not divisible by trainer.n_gpus_per_node ({gpus})")
    for part in _PARTS[name]:
        omega_conf_to_dataclass(OmegaConf.select(config, part))


def _one_line(error: BaseException) -> str:
    """The message of an error in one line: of one that wraps another, as Hydra's do, that of the inner one."""
    while error.__cause__ is not None:
        error = error.__cause__
    message = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    plain = isinstance(error, (AssertionError, ValueError)) or type(error).__module__.startswith(("hydra", "omegaconf"))
    return message if plain and message else f"{type(error).__name__}: {message}"


def main() -> None:
    """Entry point."""
    print_result(lambda: compose_config(sys.argv[1], sys.argv[2:]))


if __name__ == "__main__":
    main()
