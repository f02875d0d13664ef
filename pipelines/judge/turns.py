"""What a judge is shown, turn by turn (the dialogue, a candidate's steps, two responses), and its verdicts (C).

A turn is a JSON object, so that nothing that a policy writes to please its judge can pass for a verdict or another
response. A verdict is one sentence, so a generative judge learns it by cross-entropy. Responses are shown in places A
and B; which of the two is the reference is drawn per item (papers.md §6), so that no judge learns a place. The sets of
reward models are written with all this; the service that judges in training asks with it, and reads its judge.

    >>> write_step(2, False, "en"), read_step("第二步正确。", 2), read_choice("Response B is better.")
    ('Step 2 is wrong.', True, 'B')
"""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Self, cast

from pipelines.llm.prompts import LABEL_SETS, Prompt, load
from pipelines.llm.questions import InvalidReply
from schemas.ids import unit_interval
from schemas.labels import Preference
from schemas.reasoning import CER, CER_STEPS, Cer, Lang

Step = Literal[1, 2, 3]
Choice = Literal["A", "B", "both", "neither"]

STEPS: tuple[Step, ...] = (1, 2, 3)
CHOICES: tuple[Choice, ...] = ("A", "B", "both", "neither")

_STEP: dict[Lang, dict[bool, str]] = {
    "zh": {True: "第{}步正确。", False: "第{}步不正确。"},
    "en": {True: "Step {} is right.", False: "Step {} is wrong."},
}
_NUMBERS: dict[Lang, str] = {"zh": "一二三", "en": "123"}
_CHOICE: dict[Lang, dict[Choice, str]] = {
    "zh": {"A": "回应A更好。", "B": "回应B更好。", "both": "两个回应都好。", "neither": "两个回应都不合适。"},
    "en": {
        "A": "Response A is better.",
        "B": "Response B is better.",
        "both": "Both responses are good.",
        "neither": "Neither response is acceptable.",
    },
}


def write_step(step: Step, right: bool, lang: Lang) -> str:
    """The verdict on a step."""
    return _STEP[lang][right].format(_NUMBERS[lang][step - 1])


def read_step(text: str, step: Step) -> bool:
    """Whether the verdict in the first line of `text`, in either language, is that `step` is right.

    What follows is the judge's grounds. Raises InvalidReply for anything else, a verdict on another step included.
    """
    about, right = _STEPS_READ.get(_first_line(text), (None, False))
    if about != step:
        sentence = f"no verdict on step {step}: its first line must read {write_step(step, True, 'en')!r}"
        raise InvalidReply("no_verdict", sentence)
    return right


def write_choice(choice: Choice, lang: Lang) -> str:
    """The verdict on two responses."""
    return _CHOICE[lang][choice]


def read_choice(text: str) -> Choice:
    """The choice in the first line of `text`, in either language. Raises InvalidReply as `read_step` does."""
    choice = _CHOICES_READ.get(_first_line(text))
    if choice is None:
        sentence = f"no verdict on two responses: its first line must read {write_choice('A', 'en')!r}"
        raise InvalidReply("no_verdict", sentence)
    return choice


def reference_first(row_id: str, seed: int = 0) -> bool:
    """Whether the reference of an item is shown as A: drawn, as likely as not, by the seed and the item's id."""
    return unit_interval(seed, "position", row_id) < 0.5


def as_choice(preference: Preference, reference_first: bool) -> Choice:
    """A preference in terms of places."""
    if preference in ("both", "neither"):
        return cast(Choice, preference)
    return "A" if (preference == "first") is reference_first else "B"


def as_preference(choice: Choice, reference_first: bool) -> Preference:
    """A choice in terms of reference and candidate."""
    if choice in ("both", "neither"):
        return cast(Preference, choice)
    return "first" if (choice == "A") is reference_first else "second"


def _first_line(text: str) -> str:
    """The first line as it is compared: without white space, marks at its end, case and width of its letters."""
    line = unicodedata.normalize("NFKC", text.strip().partition("\n")[0])
    return "".join(line.split()).rstrip(".。!").casefold()


_STEPS_READ = {
    _first_line(write_step(step, right, lang)): (step, right)
    for lang in _STEP
    for step in STEPS
    for right in _STEP[lang]
}
_CHOICES_READ = {_first_line(words): choice for choices in _CHOICE.values() for choice, words in choices.items()}


@dataclass(frozen=True, slots=True)
class Case:
    """A round to be judged. Of a candidate that a policy writes, steps and response may be missing."""

    history: Sequence[Mapping[str, str]]  # the turns up to the seeker's: `role`, `text`
    steps: Sequence[str | None]  # the candidate's three, as written between its tags
    response: str | None
    reference: str  # the reply of the source
    reference_first: bool  # whether that is shown as A

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
    """The system prompt of `rm_process`, `rm_outcome` or `rm_unified`, with the closed sets of the steps and the
    verdicts it may give filled in.
    """
    prompt = load(Path(__file__).parent / "prompts" / f"{name}.{lang}.md")
    steps = {
        f"step{step}_{word}": write_step(step, right, lang)
        for step in STEPS
        for word, right in (("right", True), ("wrong", False))
    }
    return prompt.filled(**LABEL_SETS[lang], **steps, **{choice: write_choice(choice, lang) for choice in CHOICES})


def process_turn(case: Case, step: Step) -> str:
    """The turn about one step alone, with the steps before it and no verdict on them: a process reward model judges
    independently (C, on the consistency of reward models).
    """
    before = [{"step": number, "text": text} for number, text in enumerate(case.texts[: step - 1], 1)]
    return _written({"dialogue": case.dialogue, "before": before, "step": step, "text": case.texts[step - 1]})


def outcome_turn(case: Case) -> str:
    """The turn about the responses alone: neither steps nor a verdict on them."""
    return _written({"dialogue": case.dialogue, **case.responses})


def unified_turns(case: Case) -> list[str]:
    """The turns of one conversation: about the steps, then the responses, if the candidate has one."""
    first, *later = case.texts
    return [
        _written({"dialogue": case.dialogue, "step": 1, "text": first}),
        *(_written({"step": number, "text": text}) for number, text in enumerate(later, 2)),
        *([] if case.response is None else [_written(case.responses)]),
    ]


def _written(shown: Mapping[str, object]) -> str:
    return json.dumps(shown, ensure_ascii=False)
