"""C's judge, UnifiReward: three steps and a response, each verdict seeing those before it, in the very turns that
`rm_unified` teaches. `apart` asks as `rm_process` and `rm_outcome` teach, question by question (C's ablation POR).

Only what is there is asked about: a step that is missing is wrong, and so shown to what comes after it; without a
response the reference has won.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, cast

from pipelines.judge.turns import Case, outcome_turn, process_turn, system_prompt, unified_turns
from pipelines.judge.verdicts import STEPS, VerdictError, as_preference, read_choice, read_step, write_step
from pipelines.llm.questions import Exchange, InvalidReply, Question
from schemas.labels import Preference
from schemas.reasoning import Lang

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
    """Judges one candidate. Raises what `ask` raises for the first verdict that is missing.

    Args:
        row_id: The prompt that was answered.
        lang: Its language.
        case: What is judged.
        models: The aliases to ask, by task: `UNIFIED`, `PROCESS`, `OUTCOME`.
        ask: Gives the value of the reply to a question.
        mode: In one conversation, or one question a verdict: on a step with the verdicts before it, on the responses
            alone.
    """
    words: list[str] = []

    async def verdict(task: str, turn: str, read: Callable[[str], Any], before: Sequence[Exchange] = ()) -> Any:
        question = Question(
            task=task,
            row_id=row_id,
            prompt=system_prompt(task, lang),
            inputs=json.loads(turn),
            parse=partial(_parse, read),
            model=models[task],
            before=tuple(before),
        )
        value, text = await ask(question)
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
            judged = [exchange.reply for exchange in before]
            right.append(await verdict(PROCESS, process_turn(case, step, judged), read))
        before.append(Exchange(json.loads(turns[step - 1]), write_step(step, right[-1], lang)))
    preference: Preference = "first"
    if case.response is not None and mode == "unified":
        preference = as_preference(await verdict(UNIFIED, turns[-1], read_choice, before), case.reference_first)
    elif case.response is not None:
        preference = as_preference(await verdict(OUTCOME, outcome_turn(case), read_choice), case.reference_first)
    return Judgement(cast(tuple[bool, bool, bool], tuple(right)), preference, "\n".join(words))


def _parse(read: Callable[[str], Any], text: str) -> tuple[Any, str]:
    """The verdict of a reply, and its words."""
    try:
        return read(text), text.strip()
    except VerdictError as error:
        raise InvalidReply("no_verdict", str(error)) from None
