"""verl's replay buffer, which stops a run where verl would go on without what has failed, or wait for ever.

verl 0.9 logs an output that fails, by its reward or for any other cause, pads its group, and trains on the rest; of a
worker that was killed it waits for outputs that never come. Both end here with an error, which ends the trainer.
"""

import time
from typing import Any

import ray
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

from pipelines.train.stopping import reason, stop

_LOOK = 2.0  # seconds between two looks at who lives
_INTERVAL = 2.0  # seconds between two looks at what is there: verl's own


class StrictReplayBuffer(ReplayBuffer):
    """As verl's own; `trainer.v1.sampler.sampler_kwargs.poll_interval` says how often it looks.

    Raises ValueError where the trainer is not synchronous: then outputs may fail, and are drawn again.
    """

    def __init__(self, trainer_mode: str, *args: Any, sampler_kwargs: Any, **kwargs: Any) -> None:
        if trainer_mode != "sync":
            raise ValueError(f"trainer.v1.trainer_mode is {trainer_mode}, and our replay buffer knows sync alone")
        interval = float((sampler_kwargs or {}).get("poll_interval", _INTERVAL))
        super().__init__(trainer_mode, *args, sampler_kwargs=sampler_kwargs, poll_interval=interval, **kwargs)
        self.alive: set[str] = set()
        self.looked = 0.0

    def _sync_metadata_from_transfer_queue(self) -> None:
        """As verl's own. Raises RuntimeError where an output has failed, or a worker is gone."""
        super()._sync_metadata_from_transfer_queue()
        if any(self.failure_keys.values()):
            stop("an output of the policy failed: the log names it, at `Error in _run_prompt`")
            raise RuntimeError(reason())
        if time.monotonic() - self.looked > _LOOK:
            self.looked = time.monotonic()
            alive = {str(name) for name in ray.util.list_named_actors()}
            if gone := sorted(self.alive - alive):
                stop(f"a worker of verl's is gone: {', '.join(gone)}")
                raise RuntimeError(reason())
            self.alive = alive
