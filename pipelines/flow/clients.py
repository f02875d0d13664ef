"""Who answers in one refresh: a client for each provider, opened when it is first needed, all of them on one budget."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

from pipelines.core.home import Home
from pipelines.llm.factory import open_client
from pipelines.llm.interface import BUDGET, PROVIDERS, LLMClient, Provider, require_provider
from pipelines.llm.progress import Progress
from pipelines.settings import Llm

# Providers that send, and so may cost money.
PAID = frozenset({"openai"})


class ClientPool:
    """All clients of a refresh. It lives as long as the refresh; left in order, it closes the refresh's budget.

    Args:
        home: Where the ledger is; None: nothing that costs money can be asked.
        llm: How models are asked.
        provider: Who is asked, whatever the settings say; None: as the settings say, then as the tables were made.
        budget: The most that may be spent; None: nothing that costs money is asked.
        budget_of: Whose budget that is: refreshes share one, a run in Dagster has its own.
        batch: Ask through batch interfaces where a model has a price for it.
        allow_shrink: Whether answers alone may halve a table (`pipelines.flow.runner`).
        progress: Hears how far a stage is.

    Raises UnknownName for a provider that there is not.
    """

    def __init__(
        self,
        home: Path | None,
        llm: Llm,
        *,
        provider: str | None = None,
        budget: Decimal | None = None,
        budget_of: str = BUDGET,
        batch: bool = False,
        allow_shrink: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self._home, self._llm, self._batch = home, llm, batch
        self.allow_shrink = allow_shrink
        self._listeners = [] if progress is None else [progress]
        self._budget, self._budget_of = budget, budget_of
        self.left: dict[str, str] = {}  # what stages wait for that were left for want of money, by name
        self.chosen = llm.provider if provider is None else require_provider(provider)
        self._opened: dict[str, LLMClient] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is not None:
            self._stack.__exit__(*error)
            return
        with self._stack:  # what was opened is closed, also where the ledger cannot be
            if self.may_spend and self._home is not None and Home(self._home).ledger.exists():
                # Its end in order ends the budget, also one that was broken off after its last call.
                self.of("openai")

    def provider(self, before: str | None) -> Provider | None:
        """Who answers for a table that was made by `before` (None: it was never made); None where nobody is named:
        the table waits. What a model made stays that model's, also where somebody forgot to say so.
        """
        return self.chosen or next((one for one in PROVIDERS if one == before), None)

    @property
    def may_spend(self) -> bool:
        """Whether there is a budget."""
        return self._budget is not None

    def costs(self, provider: str) -> bool:
        """Whether questions to `provider` wait for a budget."""
        return provider in PAID and self._budget is None

    @contextmanager
    def telling(self, progress: Progress) -> Iterator[None]:
        """Within the block one more listener hears how far a stage is."""
        self._listeners.append(progress)
        try:
            yield
        finally:
            self._listeners.remove(progress)

    def update(self, stage: str, total: int, done: int, cached: int, failed: int, spent: Decimal) -> None:
        """Hands on how far a stage is."""
        for one in self._listeners:
            one.update(stage, total, done, cached, failed, spent)

    def of(self, provider: str) -> LLMClient:
        """The client of a provider. Without a budget one that costs money gives what the ledger holds, and no more."""
        if provider not in self._opened:
            money: dict[str, Any] = {"budget": self._budget, "budget_of": self._budget_of, "batch": self._batch}
            client = open_client(self._home, self._llm, provider, **money, progress=self)
            self._opened[provider] = self._stack.enter_context(client)
        return self._opened[provider]
