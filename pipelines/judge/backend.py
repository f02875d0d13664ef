"""Which model answers behind the service: one that is asked many questions at once, or recordings, one at a time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from pipelines.errors import SettingsError
from pipelines.llm.factory import open_client
from pipelines.llm.profiles import profile, profiles
from pipelines.llm.providers.client import PersistentClient
from pipelines.llm.questions import Question, Reply
from pipelines.settings import Llm

T = TypeVar("T")

STAGE = "judging"  # in the ledger


class NoVerdict(Exception):
    """Raised where a question has no verdict after all tries; `str()` is a problem word, and no text."""


class Refused(NoVerdict):
    """Raised where there is none because of the text: a filter refuses it, or it is too long. It is so every time."""


@dataclass(frozen=True)
class JudgeBackend:
    """Answers questions: `models` are the aliases to put into them, by task, `temperatures` what the profile of each
    alias says; `_slots` limits those in flight.
    """

    provider: str
    models: Mapping[str, str]
    temperatures: Mapping[str, float | str]
    _reply: Callable[[Question[Any]], Awaitable[Reply[Any]]]
    _slots: AbstractAsyncContextManager[Any]

    async def ask(self, question: Question[T]) -> T:
        """The value of a reply. Raises NoVerdict, Refused, and GongqingError for what ends all asking."""
        async with self._slots:
            reply: Reply[T] = await self._reply(question)
        if reply.value is None:
            if reply.is_of_the_text:
                raise Refused(f"refused: {reply.detail}")
            raise NoVerdict(f"{reply.reason}: {reply.detail}" if reply.detail else str(reply.reason))
        return reply.value


def require(home: Path, llm: Llm, provider: str, models: Iterable[str], budget: Decimal | None) -> None:
    """Raises the RequestError that `open_backend` would raise before anything is asked, and opens nothing."""
    models = list(models)
    _temperatures(llm, models)
    if provider == "openai":
        PersistentClient(home, llm, STAGE, models, budget).require()
        return
    with open_client(home, llm, provider) as client:
        client.models(models)


@asynccontextmanager
async def open_backend(
    home: Path,
    llm: Llm,
    provider: str,
    models: Mapping[str, str],
    *,
    budget: Decimal | None,
    budget_of: str,
    at_once: int | None = None,
    stage: str = STAGE,
) -> AsyncIterator[JudgeBackend]:
    """The backend of a home, whose calls are of `stage` in the ledger; the other arguments are those of
    `pipelines.llm.factory.open_client`, `models` the aliases by task; all of them spend from one budget. At most
    `at_once` questions are in flight, and never more of a model than its profile allows. Raises RequestError for
    another provider or alias, a missing key, price, budget or temperature.
    """
    temperatures = _temperatures(llm, models.values())
    slots = nullcontext() if at_once is None else asyncio.Semaphore(at_once)
    if provider == "openai":
        async with PersistentClient(home, llm, stage, models.values(), budget, of=budget_of) as persistent:
            yield JudgeBackend(provider, models, temperatures, persistent.reply, slots)
        return
    with open_client(home, llm, provider) as client, ThreadPoolExecutor(1) as thread:
        known = {task: client.models([model])[0] for task, model in models.items()}

        async def reply(question: Question[Any]) -> Reply[Any]:
            [one] = await asyncio.get_running_loop().run_in_executor(thread, client.ask, stage, [question])
            return one

        yield JudgeBackend(provider, known, temperatures, reply, slots)


def _temperatures(llm: Llm, models: Iterable[str]) -> dict[str, float | str]:
    """What the profile of each alias says: a host's own default would be another judge. Raises UnknownName, and
    SettingsError for one that says nothing.
    """
    known = profiles(llm.profiles)
    stated: dict[str, float | str] = {}
    for alias in dict.fromkeys(models):
        temperature = profile(known, alias).temperature
        if temperature is None:
            raise SettingsError(
                f"the profile of the judge {alias} says no temperature",
                where=f"the model profile {alias!r}",
                hint='write temperature = 0 into it, or "none" where the model takes none; a model that also writes is '
                "better named twice, with a profile for judging (docs/judging.md)",
            )
        stated[alias] = temperature
    return stated
