"""C's judge, UnifiReward: three steps and a response, each verdict seeing those before it, in the very turns that
`rm_unified` teaches. `apart` asks as `rm_process` and `rm_outcome` teach, question by question (C's ablation POR).

Only what is there is asked about: a step that is missing is wrong, and so shown to what comes after it; without a
response the reference has won.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Literal, NamedTuple, TypeVar, cast

from pipelines.judge.asking import Ask
from pipelines.judge.turns import Case, outcome_turn, process_turn, system_prompt, unified_turns
from pipelines.judge.verdicts import (
    STEPS,
    Choice,
    VerdictError,
    as_preference,
    read_choice,
    read_step,
    write_step,
)
from pipelines.llm.questions import Exchange, InvalidReply, Question
from schemas.labels import Preference
from schemas.reasoning import Lang

Mode = Literal["unified", "apart"]
MODES: tuple[Mode, ...] = ("unified", "apart")
UNIFIED, PROCESS, OUTCOME = "rm_unified", "rm_process", "rm_outcome"  # tasks, and the sets that teach them

V = TypeVar("V")


class Said(NamedTuple, Generic[V]):
    """A verdict, and the words that it was read from."""

    verdict: V
    words: str


class Judged(NamedTuple):
    """What was found: of each step whether it is right, which response is better, and the judge's words, a line a
    verdict."""

    steps: tuple[bool, bool, bool]
    preference: Preference
    words: str


@dataclass
class Judge:
    """Judges one candidate.

    Args:
        row_id: The prompt that was answered.
        lang: Its language.
        case: What is judged.
        models: The aliases to ask, by task: `UNIFIED`, `PROCESS`, `OUTCOME`.
        ask: Asks them.
    """

    row_id: str
    lang: Lang
    case: Case
    models: Mapping[str, str]
    ask: Ask
    _words: list[str] = field(default_factory=list)

    async def judged(self, mode: Mode) -> Judged:
        """The verdicts. Raises NoVerdict for the first that is not to be had."""
        right, choice = await (self._unified() if mode == "unified" else self._apart())
        preference = "first" if choice is None else as_preference(choice, self.case.reference_first)
        return Judged(cast(tuple[bool, bool, bool], tuple(right)), preference, "\n".join(self._words))

    async def _unified(self) -> tuple[list[bool], Choice | None]:
        """In one conversation. It goes on with verdicts in the words that are taught, whatever grounds were added."""
        turns = unified_turns(self.case)
        right: list[bool] = []
        before: list[Exchange] = []
        for step, text in zip(STEPS, self.case.steps, strict=True):
            turn = turns[step - 1]
            parse = partial(read_step, step=step)
            right.append(text is not None and await self._asked(UNIFIED, turn, parse, before))
            before.append(Exchange(json.loads(turn), write_step(step, right[-1], self.lang)))
        if self.case.response is None:
            return right, None
        return right, await self._asked(UNIFIED, turns[-1], read_choice, before)

    async def _apart(self) -> tuple[list[bool], Choice | None]:
        """One question a verdict: on a step with the verdicts before it, on the responses alone."""
        right: list[bool] = []
        for step, text in zip(STEPS, self.case.steps, strict=True):
            said = [write_step(one, found, self.lang) for one, found in zip(STEPS, right, strict=False)]
            turn = process_turn(self.case, step, said)
            right.append(text is not None and await self._asked(PROCESS, turn, partial(read_step, step=step)))
        if self.case.response is None:
            return right, None
        return right, await self._asked(OUTCOME, outcome_turn(self.case), read_choice)

    async def _asked(self, task: str, turn: str, parse: Callable[[str], V], before: Sequence[Exchange] = ()) -> V:
        question: Question[Said[V]] = Question(
            task=task,
            row_id=self.row_id,
            prompt=system_prompt(task, self.lang),
            inputs=json.loads(turn),
            parse=partial(_said, parse),
            model=self.models[task],
            before=tuple(before),
        )
        said = await self.ask(question)
        self._words.append(said.words)
        return said.verdict


def _said(parse: Callable[[str], V], text: str) -> Said[V]:
    try:
        return Said(parse(text), text.strip())
    except VerdictError as error:
        raise InvalidReply("no_verdict", str(error)) from None
