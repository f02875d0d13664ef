"""Sending: walks in, walks ended, every attempt in the ledger before it leaves and again when it is over.

Whatever ends a run early (a budget that is used up, a host that refuses everything, a full disk) lets what is in
flight come home first, since it is paid for; nothing new leaves meanwhile.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import stamina

from pipelines.errors import BudgetSpent
from pipelines.llm.ledger import Ledger
from pipelines.llm.ledger_records import Answer, Attempt, Call, Elsewhere, Recorded
from pipelines.llm.money import bound, cost, worst_case
from pipelines.llm.payload import Request, canonical
from pipelines.llm.profiles import price
from pipelines.llm.providers.bodies import UnreadableBody, completion
from pipelines.llm.providers.line import Line, Trouble
from pipelines.llm.providers.walking import Walk

# More questions are at work than may be in flight, so that one that waits to ask again leaves no place empty: ours.
_WORKERS_A_PLACE = 2
# Seconds between looks at what somebody else has under way.
_FIRST_LOOK, _LONGEST_LOOK = 0.05, 2.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds between tries where the host names none: doubling from `first` to `longest`, and up to `jitter` more."""

    first: float = 0.5
    longest: float = 60.0
    jitter: float = 1.0


@dataclass(frozen=True, slots=True)
class Got:
    """What came of a request: a body, or a word why none did. `sent`: whether anything left for it."""

    body: bytes | None
    trouble: str
    sent: bool


class Stopped(Exception):
    """Raised inside a run that another request has ended."""


class Sending:
    """One stage's questions on their way."""

    def __init__(
        self,
        stage: str,
        lines: Mapping[str, Line],
        ledger: Ledger,
        *,
        budget: int | None,
        attempts: int,
        backoff: Backoff,
        ended: Callable[[Walk[Any]], None],
    ) -> None:
        """`lines` by alias; `ended` is told of every walk that has come to its end."""
        self.spent = 0  # nano-units
        self._stage, self._lines, self._ledger, self._ended = stage, lines, ledger, ended
        self._budget, self._attempts, self._backoff = budget, attempts, backoff
        self._error: Exception | None = None
        self._stopping = asyncio.Event()
        self._in_flight = 0
        self._settled = asyncio.Event()
        self._tight = asyncio.Lock()
        self._under_way: dict[str, asyncio.Future[Got]] = {}

    async def run(self, walks: Sequence[Walk[Any]]) -> None:
        """Ends every walk. Raises what ended the run early, with what was in flight settled."""
        # stamina would log every retry as a warning. The ledger has them all, and a progress bar is no place for them.
        stamina.instrumentation.set_on_retry_hooks(())
        by_line: dict[str, list[Walk[Any]]] = {}
        for walk in walks:
            by_line.setdefault(walk.profile.alias, []).append(walk)
        workers = [
            asyncio.create_task(self._work(waiting))
            for alias, theirs in by_line.items()
            for waiting in [iter(theirs)]
            for _ in range(min(len(theirs), _WORKERS_A_PLACE * self._lines[alias].limits.concurrency.most))
        ]
        stopping = asyncio.create_task(self._stopping.wait())
        everybody = asyncio.gather(*workers)
        first: set[asyncio.Future[Any]] = {everybody, stopping}
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            while self._error is not None and self._in_flight:
                await self._settlement()
        finally:
            for task in (stopping, *workers):
                task.cancel()
            await asyncio.gather(stopping, *workers, return_exceptions=True)
            await asyncio.gather(everybody, return_exceptions=True)
        if self._error is not None:
            raise self._error

    async def _work(self, waiting: Iterator[Walk[Any]]) -> None:
        for walk in waiting:
            if self._error is not None:
                return
            try:
                await self._to_its_end(walk)
            except Stopped:
                return
            except Exception as error:  # noqa: BLE001 - raised again, when what is in flight has come home
                self._stop(error)
                return

    async def _to_its_end(self, walk: Walk[Any]) -> None:
        line = self._lines[walk.profile.alias]
        while walk.reply is None:
            got = await self._fetched(walk.request, line)
            walk.called = walk.called or got.sent
            if got.body is None:
                walk.fail(got.trouble)
            else:
                walk.take(got.body)
        self._ended(walk)

    async def _fetched(self, request: Request, line: Line) -> Got:
        """What came of a request; two rows with the same one send it once."""
        if (same := self._under_way.get(request.key)) is not None:
            got = await asyncio.shield(same)
            return Got(got.body, got.trouble, sent=False)
        ours: asyncio.Future[Got] = asyncio.get_running_loop().create_future()
        self._under_way[request.key] = ours
        try:
            got = await self._tried(request, line)
        except BaseException:
            ours.set_exception(Stopped())
            ours.exception()  # nobody else may be waiting for it
            raise
        finally:
            del self._under_way[request.key]
        ours.set_result(got)
        return got

    async def _tried(self, request: Request, line: Line) -> Got:
        profile = line.profile
        call = Call(
            request.key,
            self._stage,
            profile.alias,
            profile.model,
            canonical(request.payload),
            request.sample,
            price(profile).currency,
        )
        try:
            async for attempt in stamina.retry_context(
                on=_worth_another,
                attempts=self._attempts,
                timeout=None,
                wait_initial=self._backoff.first,
                wait_max=self._backoff.longest,
                wait_jitter=self._backoff.jitter,
            ):
                with attempt:
                    return await self._once(request, line, call)
        except Trouble as trouble:
            return Got(None, f"{trouble.status}, tries: {self._attempts}", sent=True)
        raise AssertionError("stamina ends with a result or an error")

    async def _once(self, request: Request, line: Line, call: Call) -> Got:
        """One try. Raises Trouble."""
        reserve, tokens = worst_case(line.profile, request.payload), _about(request)
        look = _FIRST_LOOK
        while True:
            async with line.limits.place(tokens) as storm:
                begun = await self._begun(call, reserve)
                if isinstance(begun, Recorded):
                    return Got(begun.body, "", sent=False)
                if isinstance(begun, Attempt):
                    return await self._sent(request, line, begun, storm)
            await asyncio.sleep(look)
            look = min(2 * look, _LONGEST_LOOK)

    async def _begun(self, call: Call, reserve: int) -> Attempt | Recorded | Elsewhere:
        """The attempt, as the ledger allows it.

        What is in flight has more set aside than it will cost. So a budget is not used up before all of it has come
        home, and one question at a time waits to see.
        """
        try:
            return await self._begin(call, reserve)
        except BudgetSpent:
            async with self._tight:
                while True:
                    alone = self._in_flight == 0
                    try:
                        return await self._begin(call, reserve)
                    except BudgetSpent:
                        if alone:
                            raise
                    await self._settlement()

    async def _begin(self, call: Call, reserve: int) -> Attempt | Recorded | Elsewhere:
        if self._error is not None:
            raise Stopped
        self._in_flight += 1
        begun = None
        try:
            budget = self._budget if reserve else None  # a machine of one's own costs nothing, in whatever currency
            begun = await self._ledger.begin(call, reserve=reserve, budget=budget)
            if isinstance(begun, Attempt) and self._error is not None:
                await self._ledger.failed(begun, "not_sent", billed=False)
                begun = None
                raise Stopped
            return begun
        finally:
            if not isinstance(begun, Attempt):
                self._settle()

    async def _sent(self, request: Request, line: Line, attempt: Attempt, storm: int) -> Got:
        """Sends what the ledger has allowed, and writes down what came. Raises Trouble."""
        came = False
        try:
            body = await line.post(request)
            came = True
            recorded = await self._ledger.answered(attempt, self._answer(body, request, line, attempt))
            self.spent += recorded.cost
            line.limits.concurrency.answered()
            return Got(recorded.body, "", sent=True)
        except UnreadableBody:
            await self._ledger.failed(attempt, "unreadable", billed=None)
            raise Trouble("unreadable", billed=None) from None
        except Trouble as trouble:
            await self._ledger.failed(attempt, trouble.status, billed=trouble.billed)
            if trouble.flooded:
                line.limits.concurrency.flooded(storm)
            if trouble.refusal is not None:
                raise trouble.refusal from None
            raise
        except (asyncio.CancelledError, Exception) as error:
            if not came:  # else the ledger's writer has it in hand
                interrupted = isinstance(error, asyncio.CancelledError)
                await self._ledger.failed(attempt, "interrupted" if interrupted else "error", billed=None)
            raise
        finally:
            self._settle()

    def _answer(self, body: bytes, request: Request, line: Line, attempt: Attempt) -> Answer:
        """The answer as the ledger keeps it. Raises UnreadableBody. What tells no usage costs what was set aside."""
        given = completion(body)
        usage, owed = given.usage, attempt.reserve
        if usage is not None:
            owed = cost(line.profile, usage)
        return Answer(
            body,
            given.served,
            given.finish_reason,
            usage or bound(request.payload),
            owed,
            attempt.call.currency,
        )

    def _stop(self, error: Exception) -> None:
        if self._error is None:
            self._error = error
        self._stopping.set()
        self._wake()

    def _settle(self) -> None:
        self._in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        self._settled.set()
        self._settled = asyncio.Event()

    async def _settlement(self) -> None:
        """Until something that is in flight has come home, if anything is."""
        if self._in_flight:
            await self._settled.wait()


def _worth_another(error: Exception) -> bool | float:
    """For stamina: whether to try again, and when, where the host has said it."""
    if not isinstance(error, Trouble):
        return False
    return error.after or True


def _about(request: Request) -> int:
    """Tokens as vendors count them against a limit a minute: by the characters of the text or by the reply's room,
    whichever is more.
    """
    characters = sum(len(message["content"]) for message in request.payload["messages"])
    room: int = request.payload["max_tokens"]
    return max(characters, room)
