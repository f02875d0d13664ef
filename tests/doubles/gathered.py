"""What our manager of rewards does with outputs, two managers as in two of verl's workers. Runs in `.venv-train`.

    python tests/doubles/gathered.py FOLDER

Prints, for every case by its name, what each output came to, the reason that a run would be stopped for, and how many
lines were written.
"""

import asyncio
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch
from aiohttp import web
from judge_stub import serving, verdict
from omegaconf import OmegaConf
from tensordict import TensorDict
from verl import DataProto
from verl.trainer.ppo.reward import load_reward_manager

from pipelines.rewards import services
from pipelines.train.stopping import SCORED, reason
from pipelines.train.tiny import make_tokenizer

ANSWERS = ["我在听。", "我在听，您慢慢说。", "先去睡一觉吧。"]
OUTPUTS = [f"<answer>{text}</answer>" for text in ANSWERS]
HISTORY = ["我在听。", "睡不着。"]
DIALOGUE = [{"role": "supporter", "text": HISTORY[0]}, {"role": "seeker", "text": HISTORY[1]}]
GROUP, VALIDATION, SECONDS = 3, 2, 4.0
OF_NUMBERS = """
import math

async def compute_score(*, solution_str, **_):
    return {"score": math.nan, "judge_ok": 1.0} if "说" in solution_str else {"score": 1.0}
"""


def configured(reward: str, **settings: Any) -> Any:
    module = {"path": "pkg://pipelines.train.verl_rewards"}
    manager = {"source": "importlib", "name": "GatheringRewardManager", "module": module}
    function = {"path": reward, "name": "compute_score", "reward_kwargs": settings}
    rollout = {"n": GROUP, "val_kwargs": {"n": VALIDATION}}
    reward_config = {"reward_manager": manager, "custom_reward_function": function, "group_seconds": SECONDS}
    return OmegaConf.create({"reward": reward_config, "actor_rollout_ref": {"rollout": rollout}})


def handed_over(tokens: Any, uid: str, session: int, output: str, split: str) -> DataProto:
    """One output, as verl's agent loop hands it to a worker."""
    ids = torch.tensor([tokens.encode(output)])
    batch = TensorDict({"responses": ids, "attention_mask": torch.ones_like(ids)}, batch_size=1)
    extra_info = {"split": split, "row_id": "sample:1", "lang": "zh", "dialogue": DIALOGUE}
    told = {
        "uid": uid, "session_id": session, "data_source": "gongqing/cer", "extra_info": extra_info,
        "reward_model": {"style": "rule", "ground_truth": "听起来很累。"},
    }  # fmt: skip
    return DataProto(batch=batch, non_tensor_batch={name: np.array([value]) for name, value in told.items()})


async def came_to(folder: Path, tokens: Any, case: str, outputs: list[str], managers: list[Any]) -> dict[str, Any]:
    """What outputs of one prompt come to, as the managers take turns."""
    split = "validation" if case == "validation" else "train"
    os.environ[SCORED] = str(folder / case)
    (folder / case).mkdir()
    given = [handed_over(tokens, case, at, output, split) for at, output in enumerate(outputs)]
    runs = (managers[at % 2].run_single(one) for at, one in enumerate(given))
    found = await asyncio.gather(*runs, return_exceptions=True)
    lines = [line for path in (folder / case).glob("*.jsonl") for line in path.read_text().split("\n") if line]
    return {
        "came_to": [one if isinstance(one, dict) else f"{type(one).__name__}: {one}" for one in found],
        "reason": reason(),
        "lines": [json.loads(line) for line in lines],
    }


def answering(path: str, asked: dict[str, Any]) -> Any:
    """As the stub does; one word of an answer makes the judge stop the run, another makes it slow."""
    text = asked.get("response") or asked.get("answer")
    if "睡" in text:
        return web.json_response({"stop": "the judge failed at 3 of the last 10 answers"}, status=503)
    if "慢" in text and path == "/mindchat":
        return {**verdict(path, asked), "empathy": math.nan}
    return late() if "等" in text else verdict(path, asked)


async def late() -> dict[str, Any]:
    await asyncio.sleep(6)
    return {}


async def main() -> None:
    folder = Path(sys.argv[1])
    (folder / "numbers.py").write_text(OF_NUMBERS)
    services.SECONDS, services.PAUSES = 3.0, ()
    tokens = make_tokenizer([*OUTPUTS, "等您。"] * 9)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    compeer, mindchat, numbers = (
        [load_reward_manager(configured(path), tokens) for _ in range(2)]
        for path in ("pkg://pipelines.rewards.compeer", "pkg://pipelines.rewards.mindchat", str(folder / "numbers.py"))
    )
    async with serving(answering) as (address, _):
        os.environ[services.JUDGE] = address
        whole = [OUTPUTS[0], OUTPUTS[1], "我在听。"]
        cases = {
            "whole": (whole, compeer), "validation": (whole[:VALIDATION], compeer), "stopped": (OUTPUTS, compeer),
            "lost": (whole[:2], compeer), "slow": (["<answer>等您。</answer>"], mindchat),
            "not_a_number": ([OUTPUTS[1]], mindchat), "numbers": (OUTPUTS[:2], numbers),
        }  # fmt: skip
        told = {case: await came_to(folder, tokens, case, *of) for case, of in cases.items()}
    sys.stdout.write("\n" + json.dumps(told) + "\n")
    await services.close()


if __name__ == "__main__":
    asyncio.run(main())
