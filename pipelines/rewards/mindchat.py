"""M's reward as verl calls it: `reward.custom_reward_function.path=pkg://pipelines.rewards.mindchat`.

r = r_format + r_answer (papers.md §6). The answer is a judge's to score; without one the form alone counts, and the run
says so: `judge_ok` is then 0 in every row, and `r_answer` with it.
"""

from typing import Any

from pipelines.rewards.format import ecot


def compute_score(*, solution_str: str, **_: Any) -> dict[str, float]:
    """The reward of one output. Always the same keys: verl takes those of a batch from its first row.

    Args:
        solution_str: The output, as verl decodes it. What else verl hands over is not looked at.
    """
    form = ecot(solution_str)
    return {
        "score": form.r_format,
        "r_format": form.r_format,
        "r_exist": form.r_exist,
        "r_num": form.r_num,
        "r_order": form.r_order,
        "ordered": float(form.ordered),
        "strict": float(form.strict),
        "r_answer": 0.0,
        "judge_ok": 0.0,
    }
