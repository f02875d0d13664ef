"""Sending: requests in, requests ended, every attempt in the ledger before it leaves and again when it is over.

Whatever ends a run early (a spent budget, a host that refuses everything, a full disk, Ctrl-C) lets what is in
flight come home first, since it is paid for; nothing new leaves meanwhile.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import stamina

from pipelines.errors import BudgetSpent
from pipelines.llm.failures import InvalidReplies
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Attempt, Call, Elsewhere, Recorded
from pipelines.llm.money import worst_case
from pipelines.llm.payload import Request
from pipelines.llm.profiles import Profile
from pipelines.llm.progress import Told
from pipelines.llm.providers import settling
from pipelines.llm.providers.endpoint import Endpoint, RequestFailed
from pipelines.llm.providers.interrupts import deferred
from pipelines.llm.providers.pending import PendingRequest
from pipelines.llm.questions import NO_ANSWER, OVER_BUDGET

# More questions are at work than may be in flight, so that one that waits to ask again leaves no place empty: ours.
_WORKERS_A_PLACE = 2
# Seconds between looks at what somebody else has under way.
_FIRST_LOOK, _LONGEST_LOOK = 0.05, 2.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds between tries where the host names none: doubling from `first` to `longest`, and up to `jitter` more."""

    first: float = 0.5
    longest: float = 60.0
    jitter: float = 1.0


@dataclass(frozen=True, slots=True)
class RequestResult:
    """What came of a request: a body, or a word why none did, and the `reason` of the reply for it. `sent`: whether
    anything left for it.
    """

    body: bytes | None
    trouble: str
    sent: bool
    reason: str = NO_ANSWER


class Stopped(Exception):
    """Raised inside a run that another request has ended."""


class Sending:
    """One stage's questions on their way."""

    def __init__(
        self,
        stage: str,
        endpoints: Mapping[str, Endpoint],
        ledger: Ledger,
        *,
        budget: int | None,
        attempts: int,
        backoff: Backoff,
        told: Told,
        counts: InvalidReplies | None = None,
    ) -> None:
        """`endpoints` by alias; `told` hears of every request that has come to its end, and of what was paid. `counts`
        ends the run where too many of the replies are no answers.
        """
        self._stage, self._endpoints, self._ledger, self._told = stage, endpoints, ledger, told
        self._budget, self._attempts, self._backoff = budget, attempts, backoff
        self._counts = counts
        self._error: Exception | None = None
        self._stopping = asyncio.Event()
        self._in_flight = 0
        self._settled = asyncio.Event()
        self._tight = asyncio.Lock()
        self._under_way: dict[str, asyncio.Future[RequestResult]] = {}

    async def run(self, requests: Sequence[PendingRequest[Any]]) -> None:
        """Ends every request. Raises what ended the run early, with what was in flight settled."""
        # stamina would log every retry as a warning. The ledger has them all, and a progress bar is no place for them.
        stamina.instrumentation.set_on_retry_hooks(())
        by_endpoint: dict[str, list[PendingRequest[Any]]] = {}
        for pending in requests:
            by_endpoint.setdefault(pending.profile.alias, []).append(pending)
        workers = [
            asyncio.create_task(self._work(waiting))
            for alias, theirs in by_endpoint.items()
            for waiting in [iter(theirs)]
            for _ in range(min(len(theirs), _WORKERS_A_PLACE * self._endpoints[alias].limits.concurrency.most))
        ]
        stopping = asyncio.create_task(self._stopping.wait())
        everybody = asyncio.gather(*workers)
        first: set[asyncio.Future[Any]] = {everybody, stopping}
        try:
            async with deferred(self._interrupt):
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

    async def _work(self, waiting: Iterator[PendingRequest[Any]]) -> None:
        for pending in waiting:
            if self._error is not None:
                return
            try:
                await self._to_its_end(pending)
            except Stopped:
                return
            except Exception as error:  # noqa: BLE001 - raised again, when what is in flight has come home
                self._stop(error)
                return

    async def _to_its_end(self, pending: PendingRequest[Any]) -> None:
        endpoint = self._endpoints[pending.profile.alias]
        while pending.reply is None:
            got = await self._fetched(pending.request, endpoint)
            pending.called = pending.called or got.sent
            if got.body is None:
                pending.fail(got.trouble, got.reason)
            else:
                pending.take(got.body)
        self._told.reply(pending.reply, cached=not pending.called)
        if self._counts is not None:
            self._counts.count(pending.reply)
            self._counts.require([pending.profile.alias])

    async def _fetched(self, request: Request, endpoint: Endpoint) -> RequestResult:
        """What came of a request; two rows with the same one send it once, and none what was hopeless before."""
        if (hopeless := endpoint.hopeless.get(request.key)) is not None:
            return RequestResult(None, f"{hopeless}, tries: 0", sent=False)
        if (same := self._under_way.get(request.key)) is not None:
            got = await asyncio.shield(same)
            return replace(got, sent=False)
        ours: asyncio.Future[RequestResult] = asyncio.get_running_loop().create_future()
        self._under_way[request.key] = ours
        try:
            got = await self._tried(request, endpoint)
        except BaseException:
            ours.set_exception(Stopped())
            ours.exception()  # nobody else may be waiting for it
            raise
        finally:
            del self._under_way[request.key]
        ours.set_result(got)
        return got

    async def _tried(self, request: Request, endpoint: Endpoint) -> RequestResult:
        call = settling.call(self._stage, request, endpoint.profile)
        tries = 0
        try:
            async for attempt in stamina.retry_context(
                on=_worth_another,
                attempts=self._attempts,
                timeout=None,
                wait_initial=self._backoff.first,
                wait_max=self._backoff.longest,
                wait_jitter=self._backoff.jitter,
            ):
                tries = attempt.num
                with attempt:
                    return await self._once(request, endpoint, call)
        except RequestFailed as trouble:
            if trouble.again and (refusal := endpoint.unanswered(trouble.status)) is not None:
                raise refusal from None
            return RequestResult(None, f"{trouble.status}, tries: {tries}", sent=True)
        except BudgetSpent as error:
            if not error.too_dear:
                raise
            return RequestResult(None, error.figures, sent=False, reason=OVER_BUDGET)
        raise AssertionError("stamina ends with a result or an error")

    async def _once(self, request: Request, endpoint: Endpoint, call: Call) -> RequestResult:
        """One try. Raises RequestFailed."""
        reserve, tokens = worst_case(endpoint.profile, request.payload), _about(request, endpoint.profile)
        look = _FIRST_LOOK
        while True:
            async with endpoint.limits.place(tokens) as place:
                begun = await self._begun(call, reserve)
                place.used = isinstance(begun, Attempt)
                if isinstance(begun, Recorded):
                    return RequestResult(begun.body, "", sent=False)
                if isinstance(begun, Attempt):
                    return await self._sent(request, endpoint, begun, place.storm)
            await asyncio.sleep(look)
            look = min(2 * look, _LONGEST_LOOK)

    async def _begun(self, call: Call, reserve: int) -> Attempt | Recorded | Elsewhere:
        """The attempt, as the ledger allows it.

        What is in flight has more set aside than it will cost. So a budget is not used up before all of it has come
        home, and one question at a time waits to see.
        """
        try:
            return await self._begin(call, reserve)
        except BudgetSpent as error:
            if error.too_dear:  # whatever comes home
                raise
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

    async def _sent(self, request: Request, endpoint: Endpoint, attempt: Attempt, storm: int) -> RequestResult:
        """Sends what the ledger has allowed, and writes down what came. Raises RequestFailed."""
        came = False
        try:
            body = await endpoint.post(request)
            came = True
            given, readable = settling.read(body)
            kept = settling.answer(given, readable, body, endpoint.profile, attempt, request.payload)
            recorded = await self._ledger.answered(attempt, kept)
            self._told.paid(recorded.cost)
            endpoint.limits.concurrency.answered()
            # What is no completion was paid for as well. It ends its question; a host that sends nothing else, the run.
            refusal = settling.overrun(recorded, attempt, endpoint.profile, endpoint.host)
            if readable:
                endpoint.answered()
            else:
                refusal = endpoint.unanswered("unreadable") or refusal
            if refusal is not None:
                raise refusal
            return RequestResult(recorded.body, "", sent=True)
        except RequestFailed as trouble:
            await self._ledger.failed(attempt, trouble.status, billed=trouble.billed)
            if trouble.flooded:
                endpoint.limits.concurrency.flooded(storm)
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

    def _interrupt(self) -> None:
        log.warning("waiting for %d answers that are under way and paid for; Ctrl-C: leave them", self._in_flight)
        self._stop(Stopped())

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
    if not isinstance(error, RequestFailed) or not error.again:
        return False
    return error.after or True


def _about(request: Request, profile: Profile) -> int:
    """Tokens as vendors count them against a limit a minute: by the characters of the text or by the reply's room,
    whichever is more.
    """
    characters = sum(len(message["content"]) for message in request.payload["messages"])
    room: int = request.payload[profile.limit_field]
    return max(characters, room)
