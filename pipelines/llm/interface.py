"""What every provider gives: many questions in, as many replies out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any, Literal, Protocol, Self

from pipelines.errors import RequestError, UnknownName
from pipelines.llm.questions import Question, Reply

Provider = Literal["openai", "replay", "written"]
PROVIDERS: tuple[Provider, ...] = ("openai", "replay", "written")
# Who may judge in training (nobody has written anything about what a policy will say), and `none`: nobody does.
JudgeProvider = Literal["openai", "replay", "none"]
JUDGES: tuple[JudgeProvider, ...] = ("openai", "replay")
# All stages of a refresh spend from one budget, and one refresh is at work at a time: its name in the ledger, to which
# a refresh of some stages alone adds theirs.
BUDGET = "refresh"


@dataclass(frozen=True)
class ModelEstimate:
    """What one model would be asked: calls, questions answered without one, and the most that the calls may take."""

    calls: int = 0
    cached: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: Decimal = Decimal(0)


@dataclass(frozen=True)
class Estimate(ModelEstimate):
    """The worst case of what is not in the ledger yet: every message at its greatest, every reply as long as it may
    be. Repairs of invalid replies come on top; the cap of a budget holds for them too.
    """

    currency: str = "USD"
    by_model: Mapping[str, ModelEstimate] = field(default_factory=dict)

    @classmethod
    def of(cls, by_model: Mapping[str, ModelEstimate], currency: str = "USD") -> Self:
        """The sums over the models, by alias."""
        names = (field.name for field in fields(ModelEstimate))
        sums: dict[str, Any] = {name: sum(getattr(one, name) for one in by_model.values()) for name in names}
        sums["cost"] = sum((one.cost for one in by_model.values()), Decimal(0))
        return cls(**sums, currency=currency, by_model=by_model)


class LLMClient(Protocol):
    """Answers questions."""

    @property
    def provider(self) -> Provider:
        """Its name."""

    def models(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The aliases to put into questions. Raises UnknownName for one without a profile."""

    def ask(self, stage: str, questions: Sequence[Question[Any]]) -> list[Reply[Any]]:
        """The replies, in the order of the questions."""

    def estimate(self, stage: str, questions: Sequence[Question[Any]]) -> Estimate:
        """What asking would take. Sends nothing."""


def require_provider(name: str, known: Sequence[str] = PROVIDERS) -> Any:
    """The provider of that name. Raises UnknownName; for `rules`, which there once was, with what to name instead."""
    if name == "rules":
        raise RequestError(
            "there is no provider 'rules' any more: nothing pretends to be a model",
            hint=f"{' or '.join(known)}; without one, what needs a model waits, and all else is made",
        )
    if name not in known:
        raise UnknownName("provider", name, known)
    return name
