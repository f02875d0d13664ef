"""The manager of rewards that verl's workers load: `reward.reward_manager.source=importlib`.

Any of verl's workers may get an output. Where a reward needs all outputs of a prompt (`group_scores` of its module),
one Ray actor gathers them and has them scored together.

Every output leaves a line in ``$GONGQING_SCORED/<process>-<start>.jsonl``: the terms of its reward, and the judge's
words, which verl cannot keep. An output without a reward stops the run (`stopping`; verl alone would go on without it,
see `verl_sampler`).
"""

import asyncio
import inspect
import json
import math
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import ray
from verl import DataProto
from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase
from verl.utils.import_utils import load_module

from pipelines.rewards.services import RewardFailed
from pipelines.train.stopping import SCORED, stop

SECONDS = 3600.0  # that the outputs of a prompt may be apart; `+reward.group_seconds` of the configuration: ours
NEEDED = ("score", "judge_ok")
_AT_ONCE = 100_000  # outputs that may wait in the actor
_NAME = "gongqing_groups"

Scores = dict[str, Any]


class Groups:
    """A Ray actor, one of a run: the outputs of a prompt meet here, and are scored together, once.

    Of an output that fails it has to hear (`fail`): the others of its prompt then fail at once, and do not wait for it.
    """

    def __init__(self, config: Any) -> None:
        function = config.reward.custom_reward_function
        self.score: Callable[..., Awaitable[list[Scores]]] = load_module(function.path).group_scores
        self.settings = dict(function.get("reward_kwargs") or {})
        self.seconds = float(config.reward.get("group_seconds", SECONDS))
        self.outputs: dict[str, dict[int, tuple[str, Scores]]] = {}
        self.answers: dict[str, asyncio.Future[dict[int, Scores]]] = {}

    async def scored(self, uid: str, session: int, size: int, output: str, result: Scores, extra_info: Any) -> Scores:
        """The scores of one output (the `session`-th of `size` of the prompt `uid` in its step), once its group is
        complete; `result` is that of `compute_score`.

        Raises RewardFailed where another of the group has failed, or is late.
        """
        answer = self.answers.setdefault(uid, asyncio.get_running_loop().create_future())
        group = self.outputs.setdefault(uid, {})
        group[session] = (output, result)
        if len(group) == size and not answer.done():
            await self._answer(uid, answer, extra_info)
        try:
            return (await asyncio.wait_for(asyncio.shield(answer), self.seconds))[session]
        except TimeoutError:
            self.fail(uid, f"of the {size} outputs of a prompt {len(group)} had a reward after {self.seconds:g} s")
            return answer.result()[session]

    def fail(self, uid: str, why: str) -> None:
        """One of the outputs of a prompt has no reward: neither will the others."""
        answer = self.answers.setdefault(uid, asyncio.get_running_loop().create_future())
        if not answer.done():
            answer.set_exception(RewardFailed(why))
            answer.exception()  # marked as retrieved, also where nobody waits

    async def _answer(self, uid: str, answer: "asyncio.Future[dict[int, Scores]]", extra_info: Any) -> None:
        group = dict(sorted(self.outputs[uid].items()))
        outputs, results = zip(*group.values(), strict=True)
        try:
            scores = await self.score(outputs, results, extra_info=extra_info, **self.settings)
        except Exception as error:  # noqa: BLE001 - every output of the group gets it, whatever it is
            self.fail(uid, f"the outputs of a prompt cannot be scored together: {_words(error)}")
        else:
            answer.set_result(dict(zip(group, scores, strict=True)))
            del self.outputs[uid], self.answers[uid]


class GatheringRewardManager(RewardManagerBase):
    """What verl asks for the reward of an output."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any, **_: Any) -> None:
        super().__init__(config, tokenizer, compute_score)
        self.started = time.time_ns()
        self.groups: Any = None
        if hasattr(load_module(config.reward.custom_reward_function.path), "group_scores"):
            actor: Any = ray.remote(Groups)
            options = {"name": _NAME, "get_if_exists": True, "num_cpus": 0, "max_concurrency": _AT_ONCE}
            self.groups = actor.options(**options).remote(config)

    async def run_single(self, data: DataProto) -> dict[str, Any]:
        """The reward of one output (of several turns, that of the last).

        Returns:
            `reward_score`, and every term as `reward_extra_info`: numbers, always of the same names.

        Raises RewardFailed for an output without a reward.
        """
        item = data[-1:][0]
        row = item.non_tensor_batch
        try:
            output = await self.loop.run_in_executor(None, self._decode, item)
            words, terms = _split(await self._scores(output, row))
        except Exception as error:
            stop(why := f"an output has no reward: {_words(error)}")
            if self.groups is not None:
                self.groups.fail.remote(row["uid"], why)  # not waited for: the error is to be raised, whatever comes
            raise
        self._write(output, row, words, terms)
        return {"reward_score": terms["score"], "reward_extra_info": terms}

    def _decode(self, item: Any) -> str:
        response = item.batch["responses"]
        valid = int(item.batch["attention_mask"][-response.shape[-1] :].sum())
        text: str = self.tokenizer.decode(response[:valid], skip_special_tokens=True)
        return text

    async def _scores(self, output: str, row: Mapping[str, Any]) -> Scores:
        extra_info = dict(row["extra_info"])
        result = self.compute_score(
            data_source=row["data_source"],
            solution_str=output,
            ground_truth=row["reward_model"]["ground_truth"],
            extra_info=extra_info,
            length=lambda text: len(self.tokenizer.encode(text, add_special_tokens=False)),
        )
        result = await result if inspect.isawaitable(result) else result
        if self.groups is None:
            return dict(result)
        rollout = self.config.actor_rollout_ref.rollout
        size = int(rollout.n if extra_info["split"] == "train" else rollout.val_kwargs.n)
        session = int(row["session_id"])
        return dict(await self.groups.scored.remote(row["uid"], session, size, output, result, extra_info))

    def _write(self, output: str, row: Mapping[str, Any], words: str, terms: Mapping[str, float]) -> None:
        if SCORED not in os.environ:
            return
        line = {
            "uid": row["uid"],
            "session": int(row["session_id"]),
            "split": row["extra_info"]["split"],
            "row_id": row["extra_info"]["row_id"],
            "output": output,
            "words": words,
            "terms": terms,
        }
        # A process of a later start may have the same number, and this one may be killed in the midst of a line.
        name = f"{os.getpid()}-{self.started}.jsonl"
        with (Path(os.environ[SCORED]) / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _split(scores: Scores) -> tuple[str, dict[str, float]]:
    """The judge's words, and the terms. Raises RewardFailed for a term that is missing, or not finite."""
    words = str(scores.pop("words", ""))
    for name in NEEDED:
        if name not in scores:
            raise RewardFailed(f"the reward has no {name}")
    for name, value in scores.items():
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            raise RewardFailed(f"{name} of the reward is {value!r}, which is no finite number")
    return words, {name: float(value) for name, value in scores.items()}


def _words(error: BaseException) -> str:
    """The message of an error; of one that came through Ray, without the traceback from over there."""
    cause = getattr(error, "cause", None) or error
    return str(cause) if isinstance(cause, RewardFailed) else f"{type(cause).__name__}: {cause}"
