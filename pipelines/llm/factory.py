"""Opens the client of a provider. It stands above them all, so that they may rest on what it returns."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

from pipelines.llm.interface import BUDGET, LLMClient, require_provider
from pipelines.llm.progress import Progress
from pipelines.settings import Llm


@contextmanager
def open_client(
    home: Path | None,
    llm: Llm,
    provider: str,
    *,
    budget: Decimal | None = None,
    budget_of: str = BUDGET,
    batch: bool = False,
    progress: Progress | None = None,
) -> Iterator[LLMClient]:
    """The client of a provider, for one refresh. Raises as `require_provider`.

    Args:
        home: Where the ledger is; None will do for all but `openai`.
        llm: How models are asked.
        provider: `openai`, `replay` or `written`.
        budget: The most that may be spent, in the currency of the profiles; None: nothing that costs is asked. It lives
            in the ledger, under the name `budget_of`: a refresh that was broken off goes on with what it had spent.
        batch: Ask through the Batch API where the profile has a price for it.
        progress: Shows how far a stage is.
    """
    if require_provider(provider) == "replay":
        from pipelines.llm.providers.replay import ReplayClient

        yield ReplayClient(llm, progress)
    elif provider == "written":
        from pipelines.llm.providers.written import WrittenClient

        yield WrittenClient(llm, progress)
    else:
        from pipelines.llm.providers.client import OpenAIClient

        if home is None:
            raise ValueError("provider openai writes down what it pays: it needs a home")
        with OpenAIClient(home, llm, budget, of=budget_of, batch=batch, progress=progress) as client:
            yield client
