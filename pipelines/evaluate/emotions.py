"""SAGE's emotion: where it begins, how far a reply may move it, when a dialogue is over. Pure functions.

From spec/papers.md §8 and the recorded dialogues of its authors: it begins at 40, moves by at most ±10 a turn within
0 … 100, and a dialogue ends in success at 100, in failure below 10.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from pipelines.errors import UnreadableFile
from pipelines.llm.replies import Reason, Verdict

START, STEP, MOST, FAILED_BELOW = 40, 10, 100, 10
End = Literal["success", "failure"]
Setting = Literal["published", "compeer"]
TURNS: dict[str, int] = {"published": 10, "compeer": 20}  # of the seeker


class Feeling(Verdict):
    """What a seeker feels at a reply. The grounds come first; `change` is the marked field that is scored, no prose."""

    why: Reason
    change: Annotated[int, Field(ge=-STEP, le=STEP)]


def moved(emotion: int, change: int) -> int:
    """The emotion after a change, within 0 … 100."""
    return min(MOST, max(0, emotion + change))


def end_of(emotion: int) -> End | None:
    """How a dialogue has ended at an emotion; None: it goes on."""
    if emotion >= MOST:
        return "success"
    return "failure" if emotion < FAILED_BELOW else None


def replay_emotions(history: Sequence[Mapping[str, Any]]) -> list[int]:
    """The emotion at each of a seeker's turns of a recorded dialogue, from the changes that were recorded.

    Raises UnreadableFile for a turn behind the first without a whole number as its change.
    """
    emotions: list[int] = []
    for turn in history:
        if turn.get("role") != "user":
            continue
        if not emotions:
            emotions.append(START)
            continue
        change = (turn.get("planning") or {}).get("change")
        if not isinstance(change, int) or isinstance(change, bool) or abs(change) > STEP:
            raise UnreadableFile(
                f"a turn of the seeker with the change {change!r}",
                where="planning.change",
                hint=f"a whole number from -{STEP} to {STEP}",
            )
        emotions.append(moved(emotions[-1], change))
    return emotions
