"""Chats as verl's SFT learns them: every reply behind the very words that will ask for it in reinforcement.

verl 0.9.1 tokenises message by message and takes the length of the generation prompt off each reply. With native
thinking off that prompt ends in an empty block, which a message alone is not rendered with by Qwen3's template: the
block is then missing from the sample, and as many tokens of the reply's beginning are not learnt. Nor can it leave a
reply unlearnt: those of a source, in the history of a warm start, are not in the policy's format. Its trainer does not
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
from verl.utils.tokenizer.chat_template import apply_chat_template

_PR_SET_PDEATHSIG = 1  # prctl(2)

if "LOCAL_RANK" in os.environ:  # torchrun's
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:  # it was killed before this line: no signal will come
        os._exit(1)


class ChatDataset(MultiTurnSFTDataset):  # type: ignore[misc]  # verl has no types
    """It differs in what a reply stands behind, in that rows lie in an order of `+data.seed`, where it is given, and in
    that those longer than `data.max_length` are none, with `data.truncation=error`. With `+data.last_reply_alone=true`
    a reply that is not the last is history.
    """

    def __init__(self, parquet_files: Any, tokenizer: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(parquet_files, tokenizer, config, *args, **kwargs)
        self.last_reply_alone = bool(config.get("last_reply_alone"))
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

    def _process_single_message(self, index: int, message: Any, full_message: Any, *args: Any, **kwargs: Any) -> Any:
        """All before the first reply that is learnt is rendered at once, as reinforcement renders a prompt."""
        replies = [place for place, one in enumerate(full_message) if one["role"] == "assistant"]
        first = replies[-1 if self.last_reply_alone else 0]
        if index < first:
            nothing = torch.zeros(0, dtype=torch.long)
            return nothing, nothing, nothing, {}
        ids, mask, attention, other = super()._process_single_message(index, message, full_message, *args, **kwargs)
        if message["role"] != "assistant":
            return ids, mask, attention, other
        generation = torch.tensor(list(self.generation_prompt), dtype=ids.dtype)
        reply = ids[_common(ids, generation) :]
        prompt = self._prompt(full_message[:first], kwargs.get("enable_thinking")) if index == first else generation
        learnt = torch.cat([torch.zeros_like(prompt), torch.ones_like(reply)])
        return torch.cat([prompt, reply]), learnt, torch.ones_like(learnt), other

    def _prompt(self, messages: Any, enable_thinking: bool | None) -> torch.Tensor:
        template = dict(self.apply_chat_template_kwargs)
        if enable_thinking is not None:
            template["enable_thinking"] = enable_thinking
        inputs: Any = apply_chat_template(
            self.tokenizer if self.processor is None else self.processor,
            messages,
            return_dict=True,
            return_tensors="pt",
            **template,
        )
        ids: torch.Tensor = inputs["input_ids"][0]
        return ids


def _common(one: torch.Tensor, other: torch.Tensor) -> int:
    """How many tokens two sequences begin with alike."""
    shorter = min(len(one), len(other))
    differ = (one[:shorter] != other[:shorter]).nonzero()
    return int(differ[0]) if len(differ) else shorter
