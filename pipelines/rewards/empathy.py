"""E's reward as verl calls it: `reward.custom_reward_function.path=pkg://pipelines.rewards.empathy`.

r = r_format + r_answer (papers.md §6): the form by one strict grammar (E eq. 4), and whether the text inside
``<answer>``, and nothing else of the output, fits the question (E eq. 6, as printed or guarded).
"""

from collections.abc import Mapping
from typing import Any, get_args

from pipelines.rewards.contrastive import AnswerReward, Reading, answer_reward
from pipelines.rewards.format import answer_alone, coe, section
from pipelines.rewards.services import RewardFailed, refuse_unknown
from schemas.reasoning import COE_TAGS

# `reward_kwargs` of a recipe: of which kind, or one of which names.
SETTINGS = {"chain": "true or false", "answer": get_args(Reading)}


async def compute_score(
    *,
    solution_str: str,
    extra_info: Mapping[str, Any],
    chain: bool = True,
    answer: Reading = "guarded",
    **kwargs: Any,
) -> dict[str, float]:
    """The reward of one output. Always the same keys: verl takes those of a batch from its first row.

    Args:
        solution_str: The output, as verl decodes it.
        extra_info: Of its prompt; `dialogue` holds the question.
        chain: Whether the form has a chain before the answer; without (E's ablation) it is one ``<answer>`` alone.
        answer: `paper` for E eq. 6 as it is printed, `guarded` for it with a guard against echoes.
        kwargs: What verl hands over besides. Raises TypeError for a setting that there is not.

    Raises RewardFailed where the encoder cannot be asked, and for a prompt without a question: the run stops.
    """
    refuse_unknown(kwargs)
    post = question(extra_info)
    r_format = coe(solution_str) if chain else answer_alone(solution_str)
    text = section(solution_str, "answer", COE_TAGS)
    reward = AnswerReward(0.0, 0.0, 0.0) if text is None else await answer_reward(post, text, answer)
    return {
        "score": r_format + reward.r_answer,
        "r_format": r_format,
        **reward._asdict(),
        "judge_ok": 1.0,
    }


def question(extra_info: Mapping[str, Any]) -> str:
    """The seeker's last turn: of a post, all of it."""
    turns = [turn["text"] for turn in extra_info.get("dialogue", ()) if turn["role"] == "seeker"]
    if not turns:
        raise RewardFailed(
            f"the prompt {extra_info.get('row_id')} has no question: no turn of a seeker in its dialogue"
        )
    return str(turns[-1])
