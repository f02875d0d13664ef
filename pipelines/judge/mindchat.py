"""M's judge (M eq. 9): three scores from 1 to 5 for the text inside ``<answer>``.

The paper names the three respects and the model (Qwen-Plus), and no prompt: the wording is ours.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, TypeAlias

from pydantic import Field

from pipelines.llm.label_sets import prompt
from pipelines.llm.questions import Question
from pipelines.llm.replies import Reason, Verdict, read_json
from schemas.reasoning import Lang

TASK = "mindchat_judge"

Score: TypeAlias = Annotated[int, Field(ge=1, le=5)]  # strict: of a Literal true would be 1


class Scores(Verdict):
    """A judgement of an answer. The grounds come first, so that the scores follow from them."""

    why: Reason
    fluency_comfort: Score
    empathic_understanding: Score
    support_encouragement: Score


def question(
    row_id: str, lang: Lang, dialogue: Sequence[Mapping[str, str]], answer: str, model: str
) -> Question[Scores]:
    """The question about an answer.

    Args:
        row_id: The prompt that was answered.
        lang: Its language.
        dialogue: The turns up to the answer: `role`, `text`.
        answer: The text inside ``<answer>``; the judge never sees the reasoning.
        model: The alias to ask.
    """
    turns = [{"role": turn["role"], "text": turn["text"]} for turn in dialogue]
    return Question(
        task=TASK,
        row_id=row_id,
        prompt=prompt(f"mindchat.{lang}", __file__),
        inputs={"dialogue": turns, "answer": answer},
        parse=partial(read_json, record=Scores),
        model=model,
        schema=Scores,
    )
