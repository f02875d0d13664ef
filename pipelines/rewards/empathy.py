"""E's reward as verl calls it: `reward.custom_reward_function.path=pkg://pipelines.rewards.empathy`.

r = r_format + r_answer (papers.md §6): the form by one strict grammar (E eq. 4), and whether the text inside
``<answer>``, and nothing else of the output, fits the question (E eq. 6).
"""

from collections.abc import Mapping
from typing import Any

from pipelines.rewards.asking import RewardFailed
from pipelines.rewards.contrastive import Answered, answered
from pipelines.rewards.format import coe
from schemas.reasoning import tags


async def compute_score(*, solution_str: str, extra_info: Mapping[str, Any], **_: Any) -> dict[str, float]:
    """The reward of one output. Always the same keys: verl takes those of a batch from its first row.

    Args:
        solution_str: The output, as verl decodes it.
        extra_info: Of its prompt; `dialogue` holds the question.

    Raises RewardFailed where the encoder cannot be asked, and for a prompt without a question: the run stops.
    """
    asked_of = question(extra_info)
    r_format = coe(solution_str)
    answer = inside(solution_str)
    found = Answered(0.0, 0.0, 0.0) if answer is None else await answered(asked_of, answer)
    return {
        "score": r_format + found.r_answer,
        "r_format": r_format,
        "r_answer": found.r_answer,
        "similarity": found.similarity,
        "echo": found.echo,
        "judge_ok": 1.0,
    }


def question(extra_info: Mapping[str, Any]) -> str:
    """What the seeker said last: of a post, all of it."""
    said = [turn["text"] for turn in extra_info.get("dialogue", ()) if turn["role"] == "seeker"]
    if not said:
        raise RewardFailed(
            f"the prompt {extra_info.get('row_id')} has no question: no turn of a seeker in its dialogue"
        )
    text: str = said[-1]
    return text


def inside(output: str) -> str | None:
    """The text of the first ``<answer>``, up to where it is closed; None where there is none, or nothing in it."""
    opened: int | None = None
    for tag in tags(output, ("answer",)):
        if opened is None and not tag.closing:
            opened = tag.end
        elif opened is not None and tag.closing:
            return output[opened : tag.start].strip() or None
    return None
