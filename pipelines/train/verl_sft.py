"""Chats as verl's SFT learns them: every reply behind the very words that will ask for it in reinforcement.

verl 0.9.1 tokenises message by message and takes the length of the generation prompt off each reply. With native
thinking off that prompt ends in an empty block, which a message alone is not rendered with by Qwen3's template: the
block is then missing from the sample, and as many tokens of the reply's beginning are not learnt. Nor does its trainer
look at a seed, and it ends at the first sample that is too long: here those are left out, as `lengths` has counted.

torchrun starts each worker in a separate session, without the locks of the run: one that outlived a killed torchrun
would train on beside the next start. So a worker ends with its torchrun.
"""

import ctypes
import os
import signal
from typing import Any

import numpy as np
import torch
from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

_PR_SET_PDEATHSIG = 1  # prctl(2)

if "LOCAL_RANK" in os.environ:  # torchrun's
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:  # it was killed before this line: no signal will come
        os._exit(1)


class ChatDataset(MultiTurnSFTDataset):  # type: ignore[misc]  # verl has no types
    """It differs in what a reply begins with, in that rows lie in an order of `+data.seed`, where it is given, and in
    that those longer than `data.max_length` are none, with `data.truncation=error`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        places = list(range(len(self)))
        if self.truncation == "error":
            places = [place for place in places if self._fits(place)]
        if self.seed is not None:
            places = [places[at] for at in np.random.default_rng(self.seed).permutation(len(places))]
        self.dataframe: Any = self.dataframe.iloc[places]
        self.messages: list[Any] = [self.messages[place] for place in places]

    def _fits(self, place: int) -> bool:
        try:
            self[place]
        except ValueError as error:
            if "is larger than self.max_length" in str(error):
                return False
            raise
        return True

    def _process_single_message(self, index: int, message: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        ids, mask, attention, other = super()._process_single_message(index, message, *args, **kwargs)
        if message["role"] != "assistant":
            return ids, mask, attention, other
        prompt = torch.tensor(list(self.generation_prompt), dtype=ids.dtype)
        reply = ids[_common(ids, prompt) :]
        learnt = torch.cat([torch.zeros_like(prompt), torch.ones_like(reply)])
        return torch.cat([prompt, reply]), learnt, torch.ones_like(learnt), other


def _common(one: torch.Tensor, other: torch.Tensor) -> int:
    """How many tokens two sequences begin with alike."""
    shorter = min(len(one), len(other))
    differ = (one[:shorter] != other[:shorter]).nonzero()
    return int(differ[0]) if len(differ) else shorter
