"""M's reward as verl calls it: `reward.custom_reward_function.path=pkg://pipelines.rewards.mindchat`.

r = r_format + r_answer (papers.md §6), each in [0, 1]. The judge of the answer is asked over HTTP, at the address in
`GONGQING_JUDGE`; it sees the dialogue and what stands inside ``<answer>``, never the reasoning.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.rewards import services
from pipelines.rewards.format import ecot, section
from pipelines.rewards.services import RewardFailed, case, refuse_unknown
from schemas.reasoning import ECOT_TAGS

DIMENSIONS = ("fluency", "empathy", "support")  # M eq. 9: each from 1 to 5
SETTINGS = {"judge": "true or false"}  # `reward_kwargs` of a recipe
_MOST = 5


async def compute_score(
    *, solution_str: str, extra_info: Mapping[str, Any], judge: bool = True, **kwargs: Any
) -> dict[str, Any]:
    """The reward of one output. Always the same keys: verl takes those of a batch from its first row.

    Args:
        solution_str, extra_info: The output, as verl decodes it, and what its row has (`schemas.training.EXTRA_INFO`).
        judge: Whether the answer is judged; else the form alone counts.
        kwargs: What verl hands over besides. Raises TypeError for a setting that there is not.

    Returns:
        `score` and its parts. A judgement that failed is 0 here, and `judge_ok` 0 says so: `group_scores` puts the mean
        of its siblings in its place. The judge stops a run in which too many fail. `words` are the judge's.

    Raises RewardFailed where the judge cannot be asked, or gives points that there are not.
    """
    refuse_unknown(kwargs)
    form = ecot(solution_str)
    answer = section(solution_str, "answer", ECOT_TAGS) if judge else None
    verdict: Mapping[str, Any] = {"ok": True}
    if answer is not None:
        verdict = await services.verdict("/mindchat", {**case(extra_info), "answer": answer})
    judged = answer is not None and verdict["ok"]
    points = {name: _points(verdict, name) if judged else 0.0 for name in DIMENSIONS}
    r_answer = sum(points.values()) / (_MOST * len(DIMENSIONS))
    return {
        "score": form.r_format + r_answer,
        **{name: float(value) for name, value in form._asdict().items()},
        "r_answer": r_answer,
        **points,
        "judge_ok": float(verdict["ok"]),
        "words": str(verdict.get("words", verdict.get("problem", ""))),
    }


async def group_scores(
    outputs: Sequence[str],  # noqa: ARG001 - as every reward's
    results: Sequence[Mapping[str, Any]],
    **_: Any,
) -> list[dict[str, Any]]:
    """The rewards of the G outputs of a prompt. One whose judgement failed has the mean `r_answer` of those that were
    judged: what nobody judged is neither good nor bad. An output without an answer was not judged. Where none was, all
    have 0 alike, and the form alone counts.
    """
    judged = [result["r_answer"] for result in results if result["r_answer"]]  # a judge gives 3 of 15 at least
    mean = sum(judged) / len(judged) if judged else 0.0
    return [
        dict(result) if result["judge_ok"] else {**result, "r_answer": mean, "score": result["r_format"] + mean}
        for result in results
    ]


def _points(verdict: Mapping[str, Any], name: str) -> float:
    points = verdict.get(name)
    if not isinstance(points, (int, float)) or not 1 <= points <= _MOST:
        raise RewardFailed(f"the judge gave {points!r} for {name}, and points go from 1 to {_MOST}")
    return float(points)
