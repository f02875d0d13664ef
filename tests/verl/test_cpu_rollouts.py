"""What the rollout of `cpu_smoke` draws: by its probabilities, and the same whatever is asked at the same time."""

from typing import Any

import pytest
from train_env import script_result

SCRIPT = """
import asyncio, json, sys
from types import SimpleNamespace
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM
from pipelines.train.verl_cpu.rollout import Server, _Draw

torch.manual_seed(0)
config = Qwen3Config(vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                     num_key_value_heads=1, head_dim=16, bos_token_id=None, eos_token_id=1, pad_token_id=0)
model = Qwen3ForCausalLM(config)
model.generation_config.eos_token_id, model.generation_config.pad_token_id = 1, 0
model.save_pretrained(sys.argv[1])
PROMPTS, TIMES = [[5, 6, 7], [8, 9], [5, 6, 7, 8, 9, 10]], 4
ANY = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}

def serve(seed):
    return Server(SimpleNamespace(seed=seed, response_length=12), SimpleNamespace(path=sys.argv[1]), 0)

async def at_once(server, **sampling):
    asked = [server.generate(prompt, {**ANY, **sampling}) for prompt in PROMPTS for _ in range(TIMES)]
    return [one.token_ids for one in await asyncio.gather(*asked)]

async def one_by_one(server):
    answers = {}
    for time in range(TIMES):  # in another order too
        for place, prompt in reversed(list(enumerate(PROMPTS))):
            answers[place, time] = (await server.generate(prompt, ANY)).token_ids
    return [answers[place, time] for place in range(len(PROMPTS)) for time in range(TIMES)]

async def main():
    server = serve(0)
    result = {"at_once": await at_once(server)}
    await server.set_global_steps(1)
    result["next_step"] = await at_once(server)
    result["another_seed"] = await at_once(serve(1))
    result["one_by_one"] = await one_by_one(serve(0))
    result["greedy"] = await at_once(serve(0), temperature=0)
    result["only_the_likeliest"] = await at_once(serve(0), top_k=1)
    result["of_next_to_no_share"] = await at_once(serve(0), top_p=1e-6)
    return result

result = asyncio.run(main())
scores = torch.tensor([2.0, -torch.inf, 0.0, 1.0, -1.0])
allowed = _Draw(map(str, range(20_000)))(None, scores.expand(20_000, -1))
result["drawn"] = torch.bincount(allowed.argmax(-1), minlength=5).tolist()
result["one_each"] = bool((allowed.isfinite().sum(-1) == 1).all())
result["shares"] = scores.softmax(-1).tolist()
print(json.dumps(result))
"""

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("training")]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    environment = {"VERL_PLATFORM": "cpu", "VERL_USE_EXTERNAL_MODULES": "pipelines.train.verl_cpu"}
    return dict(script_result(SCRIPT, tmp_path_factory.mktemp("model"), VERL_ENGINE_DEVICE="cuda", **environment))


def test_what_is_drawn_does_not_depend_on_what_is_asked_at_the_same_time(outputs: dict[str, Any]):
    assert outputs["one_by_one"] == outputs["at_once"]


def test_samples_of_a_prompt_differ_and_so_do_steps_and_seeds(outputs: dict[str, Any]):
    assert len(set(map(tuple, outputs["at_once"]))) == len(outputs["at_once"])
    for other in ("next_step", "another_seed"):
        assert all(one != two for one, two in zip(outputs["at_once"], outputs[other], strict=True))


def test_tokens_are_drawn_by_their_probabilities(outputs: dict[str, Any]):
    assert outputs["one_each"]
    for count, share in zip(outputs["drawn"], outputs["shares"], strict=True):
        assert abs(count - 20_000 * share) <= 5 * (20_000 * share * (1 - share)) ** 0.5


def test_what_cuts_to_the_likeliest_token_is_greedy(outputs: dict[str, Any]):
    assert outputs["only_the_likeliest"] == outputs["of_next_to_no_share"] == outputs["greedy"]
