"""E's reward as verl calls it: `reward.custom_reward_function.path=pkg://pipelines.rewards.empathy`.

r = r_format + r_answer (papers.md §6): the form by one strict grammar (E eq. 4), and whether the text inside
``<answer>``, and nothing else of the output, fits the question (E eq. 6).
"""

from collections.abc import Mapping
from typing import Any

from pipelines.rewards.asking import RewardFailed
from pipelines.rewards.contrastive import Answered, answered
from pipelines.rewards.format import answer_alone, coe
from pipelines.rewards.given import refuse_unknown
from pipelines.rewards.sections import section
from schemas.reasoning import COE_TAGS

SETTINGS = {"chain": "true or false"}  # `reward_kwargs` of a recipe


async def compute_score(
    *, solution_str: str, extra_info: Mapping[str, Any], chain: bool = True, **given: Any
) -> dict[str, float]:
    """The reward of one output. Always the same keys: verl takes those of a batch from its first row.

    Args:
        solution_str: The output, as verl decodes it.
        extra_info: Of its prompt; `dialogue` holds the question.
        chain: Whether the form has a chain before the answer; without (E's ablation) it is one ``<answer>`` alone.
        given: What verl hands over besides. Raises TypeError for a setting that there is not.

    Raises RewardFailed where the encoder cannot be asked, and for a prompt without a question: the run stops.
    """
    refuse_unknown(given)
    asked_of = question(extra_info)
    r_format = coe(solution_str) if chain else answer_alone(solution_str)
    answer = section(solution_str, "answer", COE_TAGS)
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
