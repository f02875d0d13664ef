"""E's answer reward (E eq. 6): 1 where cos(E(q), E(a)) > T, asked of the encoder service; and a guard against echoes.

`paper` is the equation as printed. An echo of the question has a cosine of about 1, and a few words of it in front of
generic comfort are near enough: it pays for both. `guarded` has two guards of ours. What an answer quotes is left out
before the encoder reads it, and an answer gets nothing if too many of its runs of characters are the question's own. T
is chosen for each of the two (`pipelines.train.contrastive`).
"""

import math
import os
from typing import Any, Literal, NamedTuple, get_args

from pipelines.core.overlap import windows
from pipelines.rewards.services import ENCODER, RewardFailed, encoded, request

RUN = 5  # characters, punctuation and white space left out
# Ours. Of 268 human answers to 100 questions of PsyQA the one that quotes most has 0.33, and 99 of 100 have below 0.25.
MOST_ECHOED = 0.35
QUOTED = 8  # characters as of `RUN`, that stand in the question word for word: a quotation. Ours

Reading = Literal["paper", "guarded"]

_thresholds: dict[str, dict[Reading, float]] = {}  # by address: T does not change while a service lives


class AnswerReward(NamedTuple):
    """`r_answer` of E eq. 6, the cosine of what was read of the answer, and the share of it that is the question's."""

    r_answer: float
    similarity: float
    echo: float


async def answer_reward(question: str, answer: str, reading: Reading = "guarded") -> AnswerReward:
    """Whether an answer fits a question. Raises RewardFailed where the encoder cannot be asked, or has no T."""
    least = await _threshold(reading)
    echo = echoed(question, answer)
    left = answer if reading == "paper" else unquoted(question, answer)
    if not left:
        return AnswerReward(0.0, 0.0, echo)
    [q] = await encoded([question], "query")
    [a] = await encoded([left], "answer")
    if len(q) != len(a):
        raise RewardFailed(f"the encoder gives vectors of {len(q)} and of {len(a)} numbers")
    similarity = math.fsum(q * a)
    allowed = reading == "paper" or echo <= MOST_ECHOED
    return AnswerReward(float(similarity > least and allowed), similarity, echo)


def echoed(question: str, answer: str) -> float:
    """The share of an answer's runs of five characters that stand in the question, 0 … 1; linear in their lengths.

    Runs are of letters and digits alone, so that punctuation put in between hides nothing.
    """
    question, answer = _bare(question), _bare(answer)
    runs = len(answer) - RUN + 1
    if runs < 1:
        return float(bool(answer) and answer in question)
    own = set(windows(question, RUN))
    return sum(run in own for run in windows(answer, RUN)) / runs


def unquoted(question: str, answer: str) -> str:
    """An answer without its runs of eight or more characters that stand in the question; linear in their lengths.

    Runs are of letters and digits alone, as those of `echoed`; what stands between them goes with them. Nothing ("") is
    left of an answer whose other characters are no letters. T is chosen by what this leaves
    (`pipelines.train.contrastive`), so that it fits what the reward compares with it.
    """
    return Quotable(answer).without(Quotable(question))


class Quotable:
    """A text with its runs of eight, for one that is compared with many: see `unquoted`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._runs = frozenset(windows(_bare(text), QUOTED))

    def without(self, question: "Quotable") -> str:
        """What is left of it without its quotations of a question."""
        if self._runs.isdisjoint(question._runs):
            return self.text
        letters = [(one, place) for place, each in enumerate(self.text) if each.isalnum() for one in each.casefold()]
        bare = "".join(one for one, _ in letters)
        kept: list[str] = []
        after = 0  # the end of the quotation before, in the text
        for at, run in enumerate(windows(bare, QUOTED)):
            if run in question._runs:
                first, last = letters[at][1], letters[at + QUOTED - 1][1]
                kept.append(self.text[after:first])  # nothing, where the quotation before reaches as far
                after = last + 1
        left = "".join([*kept, self.text[after:]])
        return left if any(map(str.isalnum, left)) else ""


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


async def _threshold(reading: Reading) -> float:
    """T, asked once."""
    address = os.environ.get(ENCODER, "")
    if address not in _thresholds:
        about = await request(ENCODER, "/about")
        least = about.get("threshold")
        if not isinstance(least, dict) or not all(_is_cosine(least.get(one)) for one in get_args(Reading)):
            raise RewardFailed(
                f"the encoder {about.get('folder')} has no threshold: train it with pipelines.train.contrastive"
            )
        _thresholds[address] = least
    return float(_thresholds[address][reading])


def _is_cosine(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
