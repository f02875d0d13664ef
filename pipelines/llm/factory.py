"""The client of a provider, by its name.

    with open_client(home, settings.llm, "openai", budget=Decimal(5)) as client:
        replies = client.ask("ecot_chains", questions)

Not in the interface, which every provider imports.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

from pipelines.errors import UnknownName
from pipelines.llm.interface import BUDGET, PROVIDERS, LLMClient
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
    """The client of a provider (`openai`, `replay` or `written`), for one refresh.

    Args:
        home: Where the ledger is; None will do for all but `openai`.
        llm: How models are asked.
        provider: Its name. Raises UnknownName for another.
        budget: The most that may be spent, in the currency of the profiles; None: nothing that costs is asked. It lives
            in the ledger, under the name `budget_of`: a refresh that was broken off goes on with what it had spent.
        batch: Ask through the Batch API where the profile has a price for it.
        progress: Shows how far a stage is.
    """
    if provider == "replay":
        from pipelines.llm.providers.replay import ReplayClient

        yield ReplayClient(llm, progress)
    elif provider == "written":
        from pipelines.llm.providers.written import WrittenClient

        yield WrittenClient(llm, progress)
    elif provider == "openai":
        from pipelines.llm.providers.client import OpenAIClient

        if home is None:
            raise ValueError("provider openai writes down what it pays: it needs a home")
        with OpenAIClient(home, llm, budget, of=budget_of, batch=batch, progress=progress) as client:
            yield client
    else:
        raise UnknownName("provider", provider, PROVIDERS)
