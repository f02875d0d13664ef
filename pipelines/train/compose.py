"""Composes verl's configuration with verl's own code, and validates it. Runs in `.venv-train`.

    python -m pipelines.train.compose CONFIG KEY=VALUE…

CONFIG is `ppo_trainer` (GRPO) or `sft_trainer_engine` (SFT).

Prints the configuration as JSON. What verl or we refuse ends it with exit code 2 and `{"refused": …}`, one line of what
is wrong. What verl says besides is on stderr.
"""

import contextlib
import difflib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args, get_type_hints

from pipelines.errors import GongqingError, RequestError
from pipelines.train.kinds import Kind, fits, kind
from pipelines.train.trainers import TRAINERS

# The old names still compose in verl 0.9, and are ignored: a run would train on another reward.
LEGACY = ("custom_reward_function.", "reward_model.", "reward_manager")
_KINDS: dict[Any, Kind] = {bool: "true or false", int: "a whole number", float: "a number"}
_WORDS = ("after_each_epoch",)  # what verl's SFT takes in place of a number of steps
# Numbers of which verl says no kind: by default there is none.
_UNSAID: dict[str, Kind] = dict.fromkeys(
    ("data.seed", "+data.seed", "data.val_batch_size", "trainer.total_training_steps"), "a whole number"
)
# Of each there is one at least: verl would divide by nothing, train on nothing and call it done, or keep no checkpoint,
# not even the last.
_COUNTS = (
    *("data.train_batch_size", "data.max_prompt_length", "data.max_response_length", "data.max_length"),
    *("data.micro_batch_size_per_gpu", "actor_rollout_ref.rollout.n", "actor_rollout_ref.actor.ppo_mini_batch_size"),
    *("actor_rollout_ref.rollout.agent.num_workers", "reward.num_workers"),
    *("trainer.nnodes", "trainer.n_gpus_per_node", "trainer.total_training_steps", "trainer.total_epochs"),
    "trainer.save_freq",
)
_NOT_BELOW_0 = (
    *("actor_rollout_ref.rollout.temperature", "actor_rollout_ref.actor.optim.lr", "optim.lr"),
    *(key for trainer in TRAINERS.values() for key in trainer.seeds),
)
_LEAST = {**dict.fromkeys(_COUNTS, 1), **dict.fromkeys(_NOT_BELOW_0, 0)}
# What verl makes of the configuration in its workers alone, after minutes: the parts that need no model.
_PARTS = {
    "ppo_trainer": ("algorithm", "actor_rollout_ref.rollout"),
    "sft_trainer_engine": ("engine", "optim", "checkpoint", "profiler"),
}


def composed(name: str, arguments: Sequence[str]) -> Any:
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
            known = compose(name)
            _refuse_unknown(known, [key for key in keys if not key.startswith("+")])
            config = compose(name, overrides=list(arguments))
        _refuse_other_kinds(known, config, keys)
        _validate(name, config)
        return OmegaConf.to_container(config, resolve=True)
    except Exception as error:  # whatever verl's own code happens to raise
        raise ValueError(_line(error)) from error


def answered(work: Callable[[], Any]) -> None:
    """Print what a command gives, as JSON; of what it refuses `refused`, with `where` and `hint` where they are
    known, and end with exit code 2.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):  # verl says that all is well
            found = work()
    except (GongqingError, ValueError) as error:
        told = {"refused": str(error)}
        if isinstance(error, GongqingError):
            told = {"refused": error.what, "where": str(error.where), "hint": error.hint}
        sys.stdout.write(json.dumps(told))
        sys.exit(RequestError.exit_code)
    sys.stdout.write(json.dumps(found, default=str))


def _refuse_unknown(known: Any, keys: Sequence[str]) -> None:
    from omegaconf import OmegaConf

    names = list(_names(OmegaConf.to_container(known, resolve=False)))
    for key in keys:
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f": did you mean {near[0]}?" if near else ", which one + in front would add"
            raise ValueError(f"there is no key {key}{hint}")


def _names(config: Any, before: str = "") -> Iterator[str]:
    for key, value in config.items() if isinstance(config, dict) else ():
        yield before + key
        yield from _names(value, f"{before}{key}.")


def _refuse_other_kinds(known: Any, config: Any, keys: Sequence[str]) -> None:
    """verl looks at few kinds itself: a text in place of a number would be found out wherever it is first used."""
    from omegaconf import OmegaConf

    for key in keys:
        value = OmegaConf.select(config, key.removeprefix("+"))
        wanted = _UNSAID.get(key) or (None if key.startswith("+") else _wanted(known, key))
        if wanted and value not in (None, *_WORDS) and not fits(value, wanted):
            raise ValueError(f"{key} is to be {wanted}, and {value!r} is none")
        if key in _LEAST and value not in (None, *_WORDS) and float(value) < _LEAST[key]:
            raise ValueError(f"{key} is {value}, and has to be {_LEAST[key]} or more")


def _wanted(known: Any, key: str) -> Kind | None:
    """The kind of number that a key of verl's holds: as the class of its part says, or else its default."""
    from hydra.utils import get_class
    from omegaconf import OmegaConf

    parent, _, name = key.rpartition(".")
    part = OmegaConf.select(known, parent) if parent else known
    target = part.get("_target_")
    hint = get_type_hints(get_class(target)).get(name) if target else None
    said = set(get_args(hint) or (hint,)) - {type(None)}
    if said and said <= set(_KINDS):
        return next(told for of, told in reversed(_KINDS.items()) if of in said)  # the widest
    default = OmegaConf.to_container(part, resolve=False).get(name)
    return None if isinstance(default, str) else kind(default)


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


def _line(error: BaseException) -> str:
    """What an error says, in one line: of one that wraps another, as Hydra's do, what the inner one says."""
    while error.__cause__ is not None:
        error = error.__cause__
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    plain = isinstance(error, (AssertionError, ValueError)) or type(error).__module__.startswith(("hydra", "omegaconf"))
    return said if plain and said else f"{type(error).__name__}: {said}"


def main() -> None:
    """Entry point."""
    answered(lambda: composed(sys.argv[1], sys.argv[2:]))


if __name__ == "__main__":
    main()
