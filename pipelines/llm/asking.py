"""Asking: many questions in, as many replies out, whoever answers.

with asker(home, settings.llm, "openai", ANSWERS, budget=Decimal(5)) as ask:
    replies = ask.ask("ecot_chains", questions)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from pipelines.errors import UnknownName
from pipelines.llm.progress import Progress
from pipelines.llm.questions import Question, Reply
from pipelines.settings import Llm

Provider = Literal["openai", "replay", "rules"]
PROVIDERS: tuple[Provider, ...] = ("openai", "replay", "rules")
# All stages of a refresh spend from one budget, and one refresh is at work at a time: its name in the ledger, to which
# a refresh of some stages alone adds theirs.
BUDGET = "refresh"
Answers = Mapping[str, Callable[[Mapping[str, Any]], str]]

__all__ = ["BUDGET", "PROVIDERS", "Answers", "Asker", "Estimate", "ModelEstimate", "Progress", "Provider", "asker"]


@dataclass(frozen=True)
class ModelEstimate:
    """What one model would be asked: calls to make and to be had without, and the most that they may take."""

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
        return cls(
            calls=sum(one.calls for one in by_model.values()),
            cached=sum(one.cached for one in by_model.values()),
            tokens_in=sum(one.tokens_in for one in by_model.values()),
            tokens_out=sum(one.tokens_out for one in by_model.values()),
            cost=sum((one.cost for one in by_model.values()), Decimal(0)),
            currency=currency,
            by_model=by_model,
        )


class Asker(Protocol):
    """Answers questions."""

    @property
    def provider(self) -> Provider:
        """Who answers."""

    def models(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The aliases to put into questions: those wanted, or what stands in for all of them.

        Raises UnknownName for an alias without a profile.
        """

    def ask(self, stage: str, questions: Sequence[Question[Any]]) -> list[Reply[Any]]:
        """The replies, in the order of the questions."""

    def estimate(self, stage: str, questions: Sequence[Question[Any]]) -> Estimate:
        """What asking would take. Sends nothing."""


@contextmanager
def asker(
    home: Path | None,
    llm: Llm,
    provider: str,
    rules: Answers,
    *,
    budget: Decimal | None = None,
    budget_of: str = BUDGET,
    batch: bool = False,
    progress: Progress | None = None,
) -> Iterator[Asker]:
    """Whoever answers in a home, for one refresh.

    Args:
        home: Where the ledger is; None will do for `rules` and `replay`.
        llm: How models are asked.
        provider: `openai`, `replay` or `rules`.
        rules: What the rules answer, by task.
        budget: The most that may be spent, in the currency of the profiles. It lives in the ledger: a refresh that was
            broken off goes on with what it had spent. None: nothing that costs is asked.
        budget_of: Whose budget it is: another name, another budget.
        batch: Ask through the Batch API where the profile has a price for it.
        progress: Is told how far a stage is.

    Raises UnknownName for another provider.
    """
    if provider == "rules":
        from pipelines.llm.providers.rules import RulesAsker

        yield RulesAsker(rules, progress)
    elif provider == "replay":
        from pipelines.llm.providers.replay import ReplayAsker

        yield ReplayAsker(llm, progress)
    elif provider == "openai":
        from pipelines.llm.providers.openai import opened

        if home is None:
            raise ValueError("provider openai writes down what it pays: it needs a home")
        with opened(home, llm, budget, of=budget_of, batch=batch, progress=progress) as asking:
            yield asking
    else:
        raise UnknownName("provider", provider, PROVIDERS)
