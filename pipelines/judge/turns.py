"""What a judge is shown, turn by turn: the dialogue, a candidate's steps, two responses (C's reward models).

A turn is a JSON object, as every question of the project is, so that no text of a dialogue, and nothing that a
policy writes to please its judge, can pass for a verdict or for the other response. The sets of reward models are
written with it, and the service that judges in training asks with it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

from pipelines.judge.verdicts import CHOICES, STEPS, Step, write_choice, write_step
from pipelines.llm.prompts import Prompt, load
from schemas.reasoning import CER, CER_STEPS, Cer, Lang

_HERE = Path(__file__).parent / "prompts"


@dataclass(frozen=True, slots=True)
class Case:
    """A round to be judged: the turns up to the seeker's (`role`, `text`), the candidate's three steps as written
    between its tags, its response, the reply of the source, and whether that is shown as A. Of a candidate that a
    policy writes, steps and response may be missing.
    """

    history: Sequence[Mapping[str, str]]
    steps: Sequence[str | None]
    response: str | None
    reference: str
    reference_first: bool

    @classmethod
    def of(cls, history: Sequence[Mapping[str, str]], candidate: Cer, reference: str, reference_first: bool) -> Self:
        """The case of a candidate that is whole."""
        sections = CER.read(candidate.render())
        return cls(history, [sections[name] for name in CER_STEPS], candidate.response, reference, reference_first)

    @property
    def dialogue(self) -> list[dict[str, str]]:
        """The history as it is shown."""
        return [{"role": turn["role"], "text": turn["text"]} for turn in self.history]

    @property
    def texts(self) -> list[str]:
        """The steps as they are shown: one that is missing is empty."""
        return [step or "" for step in self.steps]

    @property
    def responses(self) -> dict[str, str]:
        """Both responses in their places. Raises ValueError where the candidate has none."""
        if self.response is None:
            raise ValueError("a candidate without a response has lost: there is nothing to compare")
        shown = (self.reference, self.response)
        return dict(zip(("A", "B"), shown if self.reference_first else reversed(shown), strict=True))


@cache
def system_prompt(name: str, lang: Lang) -> Prompt:
    """The system prompt of `rm_process`, `rm_outcome` or `rm_unified`, with the verdicts it may give filled in."""
    prompt = load(_HERE / f"{name}.{lang}.md")
    steps = {
        f"step{step}_{word}": write_step(step, right, lang)
        for step in STEPS
        for word, right in (("right", True), ("wrong", False))
    }
    return prompt.filled(**steps, **{choice: write_choice(choice, lang) for choice in CHOICES})


def process_turn(case: Case, step: Step, before: Sequence[str]) -> str:
    """The turn about one step alone; `before` are the verdicts on the steps before it."""
    judged = [
        {"step": number, "text": text, "verdict": verdict}
        for number, (text, verdict) in enumerate(zip(case.texts[: step - 1], before, strict=True), 1)
    ]
    return _written({"dialogue": case.dialogue, "judged": judged, "step": step, "text": case.texts[step - 1]})


def outcome_turn(case: Case) -> str:
    """The turn about the responses alone."""
    return _written({"dialogue": case.dialogue, **case.responses})


def unified_turns(case: Case) -> list[str]:
    """The turns about the steps and then the responses, in one conversation: four, three where the candidate has no
    response.
    """
    first, *later = case.texts
    return [
        _written({"dialogue": case.dialogue, "step": 1, "text": first}),
        *(_written({"step": number, "text": text}) for number, text in enumerate(later, 2)),
        *([] if case.response is None else [_written(case.responses)]),
    ]


def _written(shown: Mapping[str, object]) -> str:
    return json.dumps(shown, ensure_ascii=False)
