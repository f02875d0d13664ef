"""UnifiReward's terms (papers.md §6): three steps, the response and the format, +1 or −1 each.

What is judged is read from the tags, also where the whole is malformed: a step that is missing is −1, and the others
are worth what they are.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pipelines.rewards.format import cer, section
from pipelines.rewards.services import RewardFailed
from schemas.labels import MATCHING, PREFERENCES
from schemas.reasoning import CER_STEPS, CER_TAGS


class Parts(NamedTuple):
    """The parts of an output that can be judged; None: missing, or not once."""

    steps: tuple[str | None, ...]  # in the order of CER_STEPS
    response: str | None

    @property
    def judged(self) -> dict[str, bool]:
        """Whether each is there, by the name of its term."""
        return {name: part is not None for name, part in zip(Terms._fields, (*self.steps, self.response), strict=False)}

    @property
    def any(self) -> bool:
        """Whether there is something to judge."""
        return any(self.judged.values())


class Terms(NamedTuple):
    """The five terms of an output; 0 for a verdict that is missing."""

    step1: float
    step2: float
    step3: float
    response: float
    format: float


def parts(text: str) -> Parts:
    """The parts of an output that can be judged."""
    return Parts(tuple(section(text, step, CER_TAGS) for step in CER_STEPS), section(text, "answer", CER_TAGS))


def terms(text: str, output: Parts, verdict: Mapping[str, Any] | None) -> Terms:
    """The terms of an output.

    Args:
        text: The output.
        output: Its parts.
        verdict: The judge's: `steps`, three booleans, and `preference`, one of PREFERENCES. None: none.

    Raises RewardFailed for a verdict of another form.
    """
    steps, preference = (None, None, None), None
    if verdict is not None:
        steps, preference = _read(verdict)
    step1, step2, step3 = (_sign(part, right) for part, right in zip(output.steps, steps, strict=True))
    response = _sign(output.response, None if preference is None else preference in MATCHING)
    return Terms(step1, step2, step3, response, cer(text))


def _read(verdict: Mapping[str, Any]) -> tuple[Any, str]:
    steps, preference = verdict.get("steps"), verdict.get("preference")
    if not isinstance(steps, list) or len(steps) != len(CER_STEPS) or not all(isinstance(one, bool) for one in steps):
        raise RewardFailed(f"the judge's verdict on the steps is {steps!r}, and three booleans were asked for")
    if preference not in PREFERENCES:
        raise RewardFailed(f"the judge prefers {preference!r}, which is none of {', '.join(PREFERENCES)}")
    return steps, str(preference)


def _sign(part: str | None, right: bool | None) -> float:
    """+1 right, −1 wrong or missing, 0 not judged."""
    if part is None:
        return -1.0
    return 0.0 if right is None else 1.0 if right else -1.0
