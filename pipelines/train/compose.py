"""Composes verl's configuration with verl's own code, and validates it. Runs in `.venv-train`.

    python -m pipelines.train.compose CONFIG KEY=VALUE…

CONFIG is `ppo_trainer` (GRPO) or `sft_trainer_engine` (SFT).

Prints the configuration as JSON. What verl refuses ends it with exit code 2 and verl's own words on stderr.
"""

import contextlib
import json
import sys
from collections.abc import Sequence
from typing import Any

# The old names still compose in verl 0.9, and are ignored: a run would train on another reward.
LEGACY = ("custom_reward_function.", "reward_model.", "reward_manager")


def composed(name: str, arguments: Sequence[str]) -> Any:
    """verl's configuration of this name with these overrides. Raises ValueError for what it, or we, refuse."""
    for argument in arguments:
        if argument.lstrip("+").startswith(LEGACY):
            raise ValueError(f"{argument.partition('=')[0]} is ignored by verl 0.9: its keys begin with reward.")
    from hydra import compose, initialize_config_module
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config

    try:
        with initialize_config_module("verl.trainer.config", version_base=None):
            config = compose(name, overrides=list(arguments))
        if name == "ppo_trainer":
            validate_config(config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config))
        return OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException, AssertionError, ValueError, TypeError, ArithmeticError) as error:
        raise ValueError(str(error)) from error


def main() -> None:
    """Entry point."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # verl says that all is well
            found = composed(sys.argv[1], sys.argv[2:])
        sys.stdout.write(json.dumps(found, default=str))
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
