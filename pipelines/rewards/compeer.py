"""C's reward as verl calls it: `reward.custom_reward_function.path=pkg://pipelines.rewards.compeer`.

r is the sum of UnifiReward's five terms (papers.md §6), +1 or −1 each: three steps, the response, the format. A part is
read from its tags, also where the whole is malformed. What repeats its group, or the conversation, is worth less
(`redundancy`); our reward manager gathers the outputs of a prompt for that. Judge and encoder are asked over HTTP.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from pipelines.rewards import services
from pipelines.rewards.format import cer, cer_strict, section
from pipelines.rewards.redundancy import Encode, Mode, decided_alone, redundancy, reweighted
from pipelines.rewards.services import ENCODER, RewardFailed, case, dialogue, encoded, refuse_unknown
from schemas.labels import MATCHING, PREFERENCES
from schemas.reasoning import CER_STEPS, CER_TAGS

Scores = dict[str, Any]
# What the format is paid for: that nothing is missing (C), or our grammar (`format.cer_strict`).
Form: TypeAlias = Literal["complete", "strict"]
# Whose utterances before are H of C eq. 6: all, as printed, or the supporter's alone.
History: TypeAlias = Literal["all", "supporter"]
# `reward_kwargs` of a recipe: of which kind, or one of which names.
SETTINGS = {
    "alpha": "a number",
    "beta": "a number",
    "mode": get_args(Mode),
    "history": get_args(History),
    "format": get_args(Form),
    "reweight": "true or false",
    "judge": "true or false",
}


class Parts(NamedTuple):
    """The parts of an output that can be judged; None: missing, or not once."""

    steps: tuple[str | None, ...]  # in the order of CER_STEPS
    response: str | None

    @property
    def judged(self) -> dict[str, bool]:
        """Whether each is there, by the name of its term."""
        return {name: part is not None for name, part in zip(Terms._fields, (*self.steps, self.response), strict=False)}


class Terms(NamedTuple):
    """The five terms of an output; 0 for a verdict that is missing."""

    step1: float
    step2: float
    step3: float
    response: float
    format: float


def parts(text: str) -> Parts:
    """The parts of an output that can be judged."""
    return Parts(tuple(section(text, step, CER_TAGS) for step in CER_STEPS), section(text, "answer", CER_TAGS))


def terms(output: Parts, verdict: Mapping[str, Any] | None, form: float) -> Terms:
    """The terms of an output with these parts: by the judge's verdict (`steps`, three booleans, and `preference`, one
    of PREFERENCES), and `form`, ±1. Raises RewardFailed for a verdict of another form.
    """
    steps, preference = (None, None, None), None
    if verdict is not None:
        steps, preference = _read(verdict)
    step1, step2, step3 = (_sign(part, right) for part, right in zip(output.steps, steps, strict=True))
    response = _sign(output.response, None if preference is None else preference in MATCHING)
    return Terms(step1, step2, step3, response, form)


def _read(verdict: Mapping[str, Any]) -> tuple[Any, str]:
    steps, preference = verdict.get("steps"), verdict.get("preference")
    if not isinstance(steps, list) or len(steps) != len(CER_STEPS) or not all(isinstance(one, bool) for one in steps):
        raise RewardFailed(f"the judge's verdict on the steps is {steps!r}, and three booleans were asked for")
    if preference not in PREFERENCES:
        raise RewardFailed(f"the judge prefers {preference!r}, which is none of {', '.join(PREFERENCES)}")
    return steps, str(preference)


def _sign(part: str | None, right: bool | None) -> float:
    """+1 right, −1 wrong or missing, 0 not judged."""
    if part is None:
        return -1.0
    return 0.0 if right is None else 1.0 if right else -1.0


async def compute_score(
    *,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any],
    length: Callable[[str], int] = len,
    judge: bool = True,
    format: Form = "complete",
    **kwargs: Any,
) -> Scores:
    """The reward of one output, before it is weighed against its group. Always the same keys.

    Args:
        solution_str, extra_info: The output, as verl decodes it, and what its row has (`schemas.training.EXTRA_INFO`).
        ground_truth: The reference: what the supporter said.
        length: Of a response: tokens, where our reward manager asks; characters by default.
        judge: Whether steps and response are judged; else what is there is 0, and the format alone counts.
        format: What the term of that name is paid for: `complete`, as C says, that nothing is missing (`format.cer`);
            `strict`, our grammar.
        kwargs: What verl hands over besides. Raises TypeError for a setting that there is not.

    Returns:
        `score` and its parts. The terms of a judgement that failed are 0 here, and `judge_ok` 0 says so:
        `group_scores` counts the mean of its siblings in its place. The judge stops a run in which too many fail.
        No part of it are `strict`, 1 where the output holds to our grammar (`format.cer_strict`), else 0, and `words`,
        the judge's.

    Raises RewardFailed where the judge cannot be asked, or gives no verdict of the form asked for.
    """
    refuse_unknown(kwargs, SETTINGS)
    output = parts(solution_str)
    verdict: Mapping[str, Any] = {"ok": True, "steps": [False] * 3, "preference": "first"}
    if judge and any(output.judged.values()):
        judged = {"steps": list(output.steps), "response": output.response, "reference": ground_truth}
        verdict = await services.verdict("/compeer", {**case(extra_info), **judged})
    strict = cer_strict(solution_str)
    form = cer(solution_str) if format == "complete" else 1.0 if strict else -1.0
    five = terms(output, verdict if judge and verdict["ok"] else None, form)
    r = float(sum(five))
    return {
        "score": r,
        "r": r,
        **five._asdict(),
        "strict": float(strict),
        "length": float(length(output.response or "")),
        "s_in": 0.0,
        "s_hi": 0.0,
        "tau": 0.0,
        "redundancy_alone": 0.0,
        "judge_ok": float(verdict["ok"]),
        "words": str(verdict.get("words", verdict.get("problem", ""))),
    }


async def group_scores(
    outputs: Sequence[str],
    results: Sequence[Scores],
    *,
    extra_info: Mapping[str, Any],
    alpha: float = 0.5,
    beta: float = 5.0,
    mode: Mode = "paper",
    history: History = "all",
    reweight: bool = True,
    judge: bool = True,  # noqa: ARG001 - `compute_score` has heeded it
    format: Form = "complete",  # noqa: ARG001 - as well
) -> list[Scores]:
    """The rewards of the G outputs of a prompt, reweighted by their redundancy (C eq. 5–7).

    A response that is not there is like no other, and has length 0. What nobody judged is neither right nor wrong: in
    r such a term counts as the mean of those that the judge gave in the group, where there are any. What needs no judge
    stays as it is: the format, and −1 for what is missing.

    Args:
        outputs: As verl decodes them, [G].
        results: Of `compute_score`, [G].
        extra_info: Of the row.
        alpha, beta, mode: As in `redundancy.reweight`; β is in the unit of `length`.
        history: Whose utterances before the outputs count for `s_hi`: `all`, the seeker's too (C eq. 6), or the
            `supporter`'s.
        reweight: Whether it counts; if not, it is reported, and `score` stays r (C's ablations POR and UR).

    Returns:
        The results [G], with `score`, `s_in`, `s_hi`, `tau`, and `redundancy_alone` 1 where outputs of equal r are
        told apart by redundancy alone.
    """
    read = [parts(output) for output in outputs]
    responses = [one.response or "" for one in read]
    before = [turn["text"] for turn in dialogue(extra_info) if history == "all" or turn["role"] == history]
    lengths = dict(zip(responses, (result["length"] for result in results), strict=True))
    encode = await _encoder([*responses, *before])
    repeats = redundancy(responses, before, alpha, beta, encode=encode, length=lengths.__getitem__)
    rewards = _rewards(results, read)
    scores = reweighted(rewards, repeats, mode) if reweight else np.asarray(rewards, np.float64)
    alone = float(decided_alone(rewards, scores.tolist()))
    return [
        {
            **result,
            "r": r,
            "score": float(score),
            "s_in": float(s_in),
            "s_hi": float(s_hi),
            "tau": repeats.tau,
            "redundancy_alone": alone,
        }
        for result, r, score, s_in, s_hi in zip(results, rewards, scores, repeats.s_in, repeats.s_hi, strict=True)
    ]


def _rewards(results: Sequence[Scores], outputs: Sequence[Parts]) -> list[float]:
    """r of each output [G], the terms that nobody judged filled in by the mean of those that were."""
    group = list(zip(results, outputs, strict=True))

    def mean(name: str) -> float:
        terms = [result[name] for result, output in group if result["judge_ok"] and output.judged[name]]
        return fmean(terms) if terms else 0.0

    return [
        result["r"]
        if result["judge_ok"]
        else float(result["r"] + sum(mean(name) for name, there in output.judged.items() if there))
        for result, output in group
    ]


async def _encoder(texts: Sequence[str]) -> Encode | None:
    """The vectors of the recipe's encoder; None where it names none. An empty text is all zeros."""
    if ENCODER not in os.environ:
        return None
    there = [text for text in dict.fromkeys(texts) if text]
    if not there:
        return None
    vectors = await encoded(there, "answer")
    of_text = dict(zip(there, vectors, strict=True)) | {"": np.zeros(vectors.shape[1])}
    return lambda asked_for: np.stack([of_text[text] for text in asked_for])
