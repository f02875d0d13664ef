"""Asking one question at a time as they come, many of them under way at once: for a service that others wait for.

`OpenAIClient.ask` takes a batch and comes back with the slowest of it. Here each question is on its own: a slow one
holds back no other, as long as there is a place in flight (`[llm] concurrency`, or the profile's).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import stamina

from pipelines.core.home import Home
from pipelines.errors import Interrupted, RequestError
from pipelines.llm.profiles import host, key, profile
from pipelines.llm.progress import Told
from pipelines.llm.providers.openai import OpenAIClient
from pipelines.llm.providers.pending import PendingRequest
from pipelines.llm.providers.sending import Backoff, Sending, Stopped
from pipelines.llm.questions import Question, Reply
from pipelines.settings import Llm

T = TypeVar("T")


@asynccontextmanager
async def standing(
    home: Path, llm: Llm, stage: str, model: str, *, budget: Decimal | None, of: str
) -> AsyncIterator["PersistentClient"]:
    """The LLM client of a home for one stage and one model, in this event loop.

    Left in order it closes the budget `of` that name; by an error, the budget stays open, and the next one goes on with
    what it had spent.

    Raises RequestError where calls cost and there is no budget; UnknownName, NoHost, NoKey, UnknownPrice.
    """
    asking = PersistentClient(Home(home).ledger, llm, budget, of=of)
    try:
        asking.stand(stage, model)
        yield asking
        asking.end_budget()
    finally:
        await asking.end()


class PersistentClient(OpenAIClient):
    """Asks as `OpenAIClient` does. What ends it (a spent budget, a host that refuses) is raised for every question from
    then on; what is in flight comes home first.
    """

    def __init__(self, path: Path, llm: Llm, budget: Decimal | None, *, of: str) -> None:
        super().__init__(path, llm, budget, of=of)
        self._tasks: set[asyncio.Task[None]] = set()
        self._bad: set[str] = set()  # keys of what came back to this process and is no answer

    def require(self, stage: str, model: str) -> str:
        """The alias. Says all that can be known to be wrong before anything leaves, and opens nothing."""
        (alias,) = self.models([model])
        if self._cap is None and (currency := self._currency([alias])) is not None:
            raise RequestError(
                f"what {stage} asks costs money, and there is no budget",
                where=f"the model {alias}",
                hint=f"--budget AMOUNT, in {currency}",
            )
        known = profile(self._profiles, alias)
        host(known)
        key(known)
        return alias

    def stand(self, stage: str, model: str) -> None:
        """Opens what it asks through, once all is as `require` has it. Within an event loop, which stays the same."""
        alias = self.require(stage, model)
        budget = self._opened_budget(stage, [alias], 1)
        self._endpoint(alias)
        stamina.instrumentation.set_on_retry_hooks(())  # as Sending.run does
        self._sending = _Standing(
            stage,
            self._endpoints,
            self._made_ledger(),
            budget=budget,
            attempts=self._llm.attempts,
            backoff=Backoff(),
            told=Told(None, stage, 0),
        )

    async def reply(self, question: Question[T]) -> Reply[T]:
        """The reply to a question. Whoever stops waiting for it loses nothing: it is answered all the same, once.

        What an earlier process had, and may come right (`Reply.may_come_right`), is drawn again, as the next sample: a
        model that replied badly may have been mended since. What came back to this process is not asked for twice.

        Raises BudgetSpent, HostRefused, LedgerError.
        """
        (pending,) = self._pending([question])
        if pending.reply is None:
            task = asyncio.create_task(self._sending.end(pending))
            self._tasks.add(task)
            task.add_done_callback(self._done)
            await asyncio.shield(task)
            assert pending.reply is not None
            if pending.reply.may_come_right:
                self._bad.add(pending.request.key)
        elif pending.reply.may_come_right and pending.request.key not in self._bad:
            return await self.reply(replace(question, sample=question.sample + 1))
        return pending.reply

    def end_budget(self) -> None:
        """Closes the budget, unless something has broken the asking off."""
        ledger = self.ledger
        if self._cap is not None and not self.broken_off and ledger is not None:
            standing = ledger.budget(self._of)
            if standing is not None:
                ledger.close_budget(standing)

    async def end(self) -> None:
        """Leaves what is in flight, which stands in the ledger as interrupted, and closes connections and ledger."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        endpoints, self._endpoints = list(self._endpoints.values()), {}
        for endpoint in endpoints:
            await endpoint.close()
        self.close()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if (
            task.cancelled() or task.exception() is not None
        ):  # asked for here: else asyncio complains where nobody waits
            self.broken_off = True


class _Standing(Sending):
    """A sending to which questions may be added as long as it lives."""

    async def end(self, pending: PendingRequest[Any]) -> None:
        """Ends a request. Raises what ended the sending, whichever request met it."""
        if self._error is not None:
            raise self._error
        try:
            await self._to_its_end(pending)
        except Stopped:
            raise self._error or Interrupted() from None
        except Exception as error:
            self._stop(error)
            raise
