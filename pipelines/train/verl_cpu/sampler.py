"""verl's own replay buffer, asked more often: of a step of half a second, two would be spent waiting."""

from typing import Any

from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

_EVERY = 0.1  # seconds; verl's default is 2


class EagerReplayBuffer(ReplayBuffer):
    """It differs in how often it looks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"poll_interval": _EVERY, **kwargs})
