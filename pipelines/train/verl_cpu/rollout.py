"""Rollouts by `transformers` on a CPU, under the name `hf_cpu`: a server as a Ray actor, and the trainer's way to it.

The server gathers what is asked at the same time, so that a step is a few calls of `generate` and not one a sample.
What is drawn follows from the seed, the step, the prompt and how often it was asked before in the step, and not from
what happens to be asked at the same time: on the same weights, the same run draws the same, however busy the machine.
Every sample comes with the log probability of each of its tokens, at the temperature it was drawn with.
"""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper
from verl.workers.rollout import base
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry, TokenOutput

NAME = "hf_cpu"
_TOGETHER = 0.02  # seconds that the first of several requests waits for the others
_MOST = 64  # prompts a call of generate


class _Request(NamedTuple):
    prompt: list[int]
    sampling: dict[str, Any]
    seed: str
    answer: "asyncio.Future[TokenOutput]"


class _Draw:
    """Draws the next token of every sample by its own numbers: of its scores (samples × vocabulary, in nats) that of
    this token becomes 0, all others −∞.
    """

    def __init__(self, seeds: Iterable[str]) -> None:
        self.random = [random.Random(seed) for seed in seeds]

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002 - their signature
        reached = scores.double().softmax(-1).cumsum(-1)
        numbers = torch.tensor([[one.random()] for one in self.random], dtype=reached.dtype)
        # Rounding may leave the sum short of 1; from the right, a token that cannot be is never drawn.
        drawn = torch.searchsorted(reached, numbers * reached[:, -1:], right=True)
        return torch.full_like(scores, -torch.inf).scatter(-1, drawn, 0.0)


class Server:
    """A Ray actor: token ids in, token ids and log probabilities out."""

    def __init__(self, config: Any, model_config: Any, replica_rank: int) -> None:
        from transformers import AutoModelForCausalLM

        torch.set_num_threads(1)
        self.config = config
        self.seed = config.seed + replica_rank  # as verl's server of vLLM
        self.step = 0
        self.asked: Counter[tuple[int, ...]] = Counter()
        model: Any = AutoModelForCausalLM.from_pretrained(model_config.path, dtype=torch.float32)
        self.model = model.eval()
        self.waiting: list[_Request] = []
        self.lock = asyncio.Lock()

    async def generate(self, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any) -> TokenOutput:
        """One sample of one prompt."""
        prompt = tuple(prompt_ids)
        seed = f"{self.seed}/{self.step}/{prompt}/{self.asked[prompt]}"
        self.asked[prompt] += 1
        mine = _Request(list(prompt), dict(sampling_params), seed, asyncio.get_running_loop().create_future())
        self.waiting.append(mine)
        while not mine.answer.done():
            async with self.lock:
                if not mine.answer.done():
                    await asyncio.sleep(_TOGETHER)
                    await self._answer_some()
        return mine.answer.result()

    async def _answer_some(self) -> None:
        """Answer those that have waited longest."""
        batch, self.waiting = self.waiting[:_MOST], self.waiting[_MOST:]
        alike: dict[str, list[_Request]] = defaultdict(list)
        for request in batch:
            alike[repr(sorted(request.sampling.items()))].append(request)
        for group in alike.values():
            try:
                outputs = await asyncio.to_thread(self._generate, group, group[0].sampling)
            except Exception as error:  # noqa: BLE001 - the trainer gets it, whatever it is
                for request in group:
                    request.answer.set_exception(error)
                continue
            for request, output in zip(group, outputs, strict=True):
                request.answer.set_result(output)

    @torch.no_grad()
    def _generate(self, group: list[_Request], sampling: dict[str, Any]) -> list[TokenOutput]:
        config = self.model.generation_config
        prompts = [one.prompt for one in group]
        ends = {config.eos_token_id} if isinstance(config.eos_token_id, int) else set(config.eos_token_id)
        width = max(map(len, prompts))
        ids = torch.tensor([[config.pad_token_id] * (width - len(prompt)) + prompt for prompt in prompts])
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        temperature = float(sampling.get("temperature", 1.0))
        drawing = LogitsProcessorList()
        if temperature > 0:
            drawing.append(TemperatureLogitsWarper(temperature))
            if (top_k := int(sampling.get("top_k", -1))) > 0:
                drawing.append(TopKLogitsWarper(top_k))
            if (top_p := float(sampling.get("top_p", 1.0))) < 1:
                drawing.append(TopPLogitsWarper(top_p))
            drawing.append(_Draw(one.seed for one in group))
        output = self.model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=int(sampling.get("max_tokens") or self.config.response_length),
            return_dict_in_generate=True,
            output_logits=True,
            do_sample=False,  # what is drawn is the only one possible
            logits_processor=drawing,
        )
        tokens = output.sequences[:, width:]
        logits = torch.stack(output.logits, 1).float() / (temperature if temperature > 0 else 1.0)
        chosen = torch.log_softmax(logits, -1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
        return [self._cut(row.tolist(), known.tolist(), ends) for row, known in zip(tokens, chosen, strict=True)]

    def _cut(self, tokens: list[int], log_probs: list[float], ends: set[int]) -> TokenOutput:
        """A sample up to its end, the end included."""
        length = next((place for place, token in enumerate(tokens, 1) if token in ends), len(tokens))
        return TokenOutput(
            token_ids=tokens[:length],
            log_probs=log_probs[:length],
            stop_reason="completed",
            extra_fields={"global_steps": self.step},
        )

    async def update_weights(self, named: dict[str, torch.Tensor]) -> None:
        """Take over the trainer's weights, all of them."""
        _, unexpected = self.model.load_state_dict(named, strict=False)
        if unexpected:
            raise ValueError(f"weights that the model does not have: {unexpected[:3]}")
        self.model.tie_weights()

    async def set_global_steps(self, step: int) -> None:
        """The step whose weights these are."""
        self.step = step
        self.asked.clear()

    async def nothing(self, *_: Any, **__: Any) -> None:
        """What verl asks of a server that shares a device with the trainer: there is nothing to free."""

    wake_up = sleep = clear_kv_cache = release_kv_cache = resume_kv_cache = nothing
    abort_all_requests = resume_generation = start_profile = stop_profile = nothing


class Replica(RolloutReplica):
    """One server."""

    async def launch_servers(self) -> None:
        """Start it, and wait until it has loaded its model."""
        import ray

        name = _name(self.replica_rank)
        options = {"name": name, "num_cpus": 0, "max_concurrency": self.max_concurrency}
        handle: Any = ray.remote(Server)
        handle = handle.options(**options).remote(self.config, self.model_config, self.replica_rank)
        await handle.nothing.remote()
        self.servers, self._server_handle, self._server_address = [handle], handle, name


class Adapter(base.BaseRollout):
    """The trainer's side: it sends the server its weights."""

    def __init__(self, config: Any, model_config: Any, device_mesh: Any, replica_rank: int = -1) -> None:  # noqa: ARG002
        super().__init__(config, model_config, device_mesh)
        self.rank = torch.distributed.get_rank()

    def _server(self) -> Any:
        import ray

        return ray.get_actor(_name(self.rank))

    async def resume(self, tags: list[str]) -> None:
        """Nothing was freed."""

    async def release(self) -> None:
        """There is nothing to free."""

    @torch.no_grad()
    async def update_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]], global_steps: int | None = None, **_: Any
    ) -> None:
        """Send all weights, whole and in single precision."""
        named = {}
        for name, weight in weights:
            whole = weight.full_tensor() if hasattr(weight, "full_tensor") else weight
            named[name] = whole.detach().to("cpu", torch.float32).clone()
        await self._server().update_weights.remote(named)
        if global_steps is not None:
            await self._server().set_global_steps.remote(global_steps)


def _name(rank: int) -> str:
    return f"{NAME}_server_{rank}_0"


RolloutReplicaRegistry.register(NAME, lambda: Replica)
# verl has no call to register the trainer's side.
base._ROLLOUT_REGISTRY[NAME, "async"] = f"{__name__}.{Adapter.__name__}"
