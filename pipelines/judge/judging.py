"""What judges in training are asked, and what they reply: M's scores of an answer, C's verdicts on a candidate."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, cast

from pydantic import Field

from pipelines.judge.turns import (
    STEPS,
    Case,
    as_preference,
    outcome_turn,
    process_turn,
    read_choice,
    read_step,
    system_prompt,
    unified_turns,
    write_step,
)
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import Exchange, Question
from pipelines.llm.replies import Reason, Verdict, read_json
from schemas.labels import Preference
from schemas.reasoning import Lang

MINDCHAT = "mindchat_judge"

Score: TypeAlias = Annotated[int, Field(ge=1, le=5)]  # strict: of a Literal true would be 1


class Scores(Verdict):
    """A judgement of an answer. The grounds come first, so that the scores follow from them."""

    why: Reason
    fluency_comfort: Score
    empathic_understanding: Score
    support_encouragement: Score


def scoring_question(
    row_id: str, lang: Lang, dialogue: Sequence[Mapping[str, str]], answer: str, model: str
) -> Question[Scores]:
    """The question of M's judge about an answer, the text inside ``<answer>`` (M eq. 9): it never sees the reasoning.

    `row_id` is the prompt that was answered, `dialogue` the turns up to the answer (`role`, `text`). The paper names
    the three respects and the model (Qwen-Plus), and no prompt: the wording is ours.
    """
    turns = [{"role": turn["role"], "text": turn["text"]} for turn in dialogue]
    return Question(
        task=MINDCHAT,
        row_id=row_id,
        prompt=prompt(f"mindchat.{lang}", __file__),
        inputs={"dialogue": turns, "answer": answer},
        parse=partial(read_json, record=Scores),
        model=model,
        schema=Scores,
    )


Mode = Literal["unified", "apart"]
MODES: tuple[Mode, ...] = ("unified", "apart")
UNIFIED, PROCESS, OUTCOME = "rm_unified", "rm_process", "rm_outcome"  # tasks, and the sets that teach them


class Judgement(NamedTuple):
    """Of each step whether it is right, which response is better, and the judge's words, a line a verdict."""

    steps: tuple[bool, bool, bool]
    preference: Preference
    words: str


async def judge(
    row_id: str,
    lang: Lang,
    case: Case,
    models: Mapping[str, str],
    ask: Callable[[Question[Any]], Awaitable[Any]],
    mode: Mode,
) -> Judgement:
    """Judges one candidate with C's judge, UnifiReward: three steps and a response, each verdict seeing those before
    it, in the very turns that `rm_unified` teaches. Mode `apart` asks as `rm_process` and `rm_outcome` teach, question
    by question, none of which shows another's verdict (C's ablation POR).

    Only what is there is asked about: a step that is missing is wrong, and in one conversation so shown to what comes
    after it; without a response the reference has won. `row_id` is the prompt that was answered, `models` the aliases
    to ask by task, and `ask` gives the value of the reply to a question. Raises what `ask` raises for the first verdict
    that is missing.
    """
    words: list[str] = []

    async def verdict(task: str, turn: str, read: Callable[[str], Any], before: Sequence[Exchange] = ()) -> Any:
        value, text = await ask(
            Question(
                task=task,
                row_id=row_id,
                prompt=system_prompt(task, lang),
                inputs=json.loads(turn),
                parse=lambda text: (read(text), text.strip()),
                model=models[task],
                before=tuple(before),
            )
        )
        words.append(text)
        return value

    turns = unified_turns(case)
    right: list[bool] = []
    # A conversation goes on with verdicts in the words that are taught, whatever grounds the judge added.
    before: list[Exchange] = []
    for step, text in zip(STEPS, case.steps, strict=True):
        read = partial(read_step, step=step)
        if text is None:
            right.append(False)
        elif mode == "unified":
            right.append(await verdict(UNIFIED, turns[step - 1], read, before))
        else:
            right.append(await verdict(PROCESS, process_turn(case, step), read))
        before.append(Exchange(json.loads(turns[step - 1]), write_step(step, right[-1], lang)))
    preference: Preference = "first"
    if case.response is not None:
        last = (UNIFIED, turns[-1]) if mode == "unified" else (OUTCOME, outcome_turn(case))
        choice = await verdict(*last, read_choice, before if mode == "unified" else ())
        preference = as_preference(choice, case.reference_first)
    return Judgement(cast(tuple[bool, bool, bool], tuple(right)), preference, "\n".join(words))
