"""A judge's verdicts in words, and read back: of each step right or wrong, of two responses which is better (C).

A verdict is one sentence, so a generative judge learns it by cross-entropy. Responses are named by the places A and B
in which they are shown; which of the two is the reference is drawn per item (papers.md §6), so that no judge learns a
place. The service that judges in training reads what the sets are written with.

    >>> write_step(2, False, "en"), read_step("第二步正确。", 2), read_choice("Response B is better.")
    ('Step 2 is wrong.', True, 'B')
"""

import unicodedata
from typing import Literal, cast

from schemas.ids import unit_interval
from schemas.labels import Preference
from schemas.reasoning import Lang

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


class VerdictError(ValueError):
    """Raised by `read_step` and `read_choice` for a text that does not begin with a verdict on what was asked."""


def write_step(step: Step, right: bool, lang: Lang) -> str:
    """The verdict on a step."""
    return _STEP[lang][right].format(_NUMBERS[lang][step - 1])


def read_step(text: str, step: Step) -> bool:
    """Whether the verdict in the first line of `text`, in either language, is that `step` is right.

    What follows is the judge's grounds. Raises VerdictError for anything else, a verdict on another step included.
    """
    about, right = _STEPS_READ.get(_first_line(text), (None, False))
    if about != step:
        raise VerdictError(f"no verdict on step {step}: its first line must read {write_step(step, True, 'en')!r}")
    return right


def write_choice(choice: Choice, lang: Lang) -> str:
    """The verdict on two responses."""
    return _CHOICE[lang][choice]


def read_choice(text: str) -> Choice:
    """The choice in the first line of `text`, in either language. Raises VerdictError as `read_step` does."""
    choice = _CHOICES_READ.get(_first_line(text))
    if choice is None:
        raise VerdictError(f"no verdict on two responses: its first line must read {write_choice('A', 'en')!r}")
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
