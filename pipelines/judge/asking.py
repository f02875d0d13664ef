"""How a judge is asked: one question, and the value of its reply, or why there is none."""

from typing import Protocol, TypeVar

from pipelines.llm.questions import Question

T = TypeVar("T")


class NoVerdict(Exception):
    """Raised where a question has no verdict after all tries; `str()` is a problem word, and no text."""


class Refused(NoVerdict):
    """Raised where there is none because of the text: a filter refuses it, or it is too long. It is so every time."""


class Ask(Protocol):
    """Asks one question."""

    async def __call__(self, question: Question[T]) -> T:
        """The value of its reply. Raises NoVerdict, Refused, and as it is what ends all asking (GongqingError)."""
