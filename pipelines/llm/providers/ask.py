"""Asking: from a question to its reply, with every attempt in the ledger before it leaves and again when it is over.

Each step of a question follows from the body of the step before alone, so what was paid for is followed again without
a call. Whatever ends a run early (a spent budget, a host that refuses everything, a full disk, Ctrl-C) lets what is in
flight come home first, since it is paid for; nothing new leaves meanwhile.
"""

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pipelines.errors import BudgetSpent, Interrupted
from pipelines.llm.completions import read_completion
from pipelines.llm.cost import worst_case
from pipelines.llm.failures import InvalidReplies
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Attempt, Call, InProgress, Recorded
from pipelines.llm.payload import Request, texts_of
from pipelines.llm.progress import Tally
from pipelines.llm.providers.endpoint import Endpoint
from pipelines.llm.providers.pending import PendingRequest, answer_of, call_of, overrun
from pipelines.llm.providers.retry import RequestFailed, RetryPolicy
from pipelines.llm.questions import NO_ANSWER, OVER_BUDGET

T = TypeVar("T")

# More questions are at work than may be in flight, so that one that waits to ask again leaves no place empty: ours.
_WORKERS_A_PLACE = 2
# Seconds between looks at what another process has in flight.
_FIRST_LOOK, _LONGEST_LOOK = 0.05, 2.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RequestResult:
    """What came of a request: a body, or why none did and the `reason` of the reply for it."""

    body: bytes | None
    detail: str = ""
    reason: str = NO_ANSWER
    sent: bool = True  # whether anything left for it
    final: bool = False  # it is not to be sent again in this run


class Stopped(Exception):
    """Raised inside a run that another request has ended."""


class Sender:
    """Sends one stage's requests."""

    def __init__(
        self,
        stage: str,
        endpoints: Mapping[str, Endpoint],
        ledger: Ledger,
        budget: int | None,
        attempts: int,
        tally: Tally,
        counts: InvalidReplies | None = None,
    ) -> None:
        """`endpoints` by alias. `counts` ends the run where too many of the replies are not answers."""
        self._stage, self._endpoints, self._ledger, self._tally = stage, endpoints, ledger, tally
        self._budget, self._retry = budget, RetryPolicy(attempts)
        self._counts = counts
        self._error: Exception | None = None
        self._stopping = asyncio.Event()
        self._in_flight = 0
        self._settled = asyncio.Event()
        self._tight = asyncio.Lock()
        self._results: dict[str, asyncio.Future[RequestResult]] = {}

    async def run(self, requests: Sequence[PendingRequest[Any]]) -> None:
        """Ends every request. Raises what ended the run early, once what was in flight has come home."""
        workers = []
        for alias, endpoint in self._endpoints.items():
            theirs = [pending for pending in requests if pending.profile.alias == alias]
            waiting, places = iter(theirs), _WORKERS_A_PLACE * endpoint.limits.most
            workers += [asyncio.create_task(self._work(waiting)) for _ in range(min(len(theirs), places))]
        stopping = asyncio.create_task(self._stopping.wait())
        everybody = asyncio.gather(*workers)
        try:
            async with _deferred_interrupt(self._interrupt):
                first: set[asyncio.Future[Any]] = {everybody, stopping}
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
                while self._error is not None and self._in_flight:
                    await self._settled.wait()
        finally:
            for task in (stopping, *workers):
                task.cancel()
            await asyncio.gather(stopping, everybody, *workers, return_exceptions=True)
        if self._error is not None:
            raise self._error

    async def end(self, pending: PendingRequest[Any]) -> None:
        """Ends a request. Raises what has ended the sending, whichever request met it."""
        if self._error is not None:
            raise self._error
        try:
            await self._ask(pending)
        except Stopped:
            raise (self._error or Interrupted()) from None
        except Exception as error:
            self._stop(error)
            raise

    async def _work(self, waiting: Iterator[PendingRequest[Any]]) -> None:
        with suppress(Exception):  # `run` raises it, when what is in flight has come home
            for pending in waiting:
                await self.end(pending)

    async def _ask(self, pending: PendingRequest[Any]) -> None:
        endpoint = self._endpoints[pending.profile.alias]
        while pending.reply is None:
            result = await self._result(pending.request, endpoint)
            pending.called = pending.called or result.sent
            if result.body is None:
                pending.fail(result.detail, result.reason)
            else:
                pending.take(result.body)
        self._tally.reply(pending.reply, cached=not pending.called)
        if self._counts is not None:
            self._counts.count(pending.reply)
            self._counts.require([pending.profile.alias])

    async def _result(self, request: Request, endpoint: Endpoint) -> RequestResult:
        """What came of a request; two rows with the same one send it once, and none sends again what was refused."""
        if (same := self._results.get(request.key)) is not None:
            return replace(await asyncio.shield(same), sent=False)
        future = self._results[request.key] = asyncio.get_running_loop().create_future()
        result = None
        try:
            result = await self._send_until_answered(request, endpoint)
        finally:
            if result is None or not result.final:
                del self._results[request.key]
            if result is None:
                future.set_exception(Stopped())
                future.exception()  # nobody else may be waiting for it
            else:
                future.set_result(result)
        return result

    async def _send_until_answered(self, request: Request, endpoint: Endpoint) -> RequestResult:
        call = call_of(self._stage, request, endpoint.profile)
        tries = 0
        try:
            async for attempt in self._retry.attempts():
                tries = attempt.num
                with attempt:
                    return await self._try(request, endpoint, call)
        except RequestFailed as failure:
            if failure.again and (refusal := endpoint.count_unanswered(failure.status)) is not None:
                raise refusal from None
            return RequestResult(None, f"{failure.status}, tries: {tries}", final=not failure.again)
        except BudgetSpent as error:
            if not error.too_dear:
                raise
            return RequestResult(None, error.figures, OVER_BUDGET, sent=False)
        raise AssertionError("stamina ends with a result or an error")

    async def _try(self, request: Request, endpoint: Endpoint, call: Call) -> RequestResult:
        profile, payload = endpoint.profile, request.payload
        reserve = worst_case(profile, payload)
        images = len(request.images) * (profile.image_tokens or 0)
        # As vendors count against a limit a minute: characters of the text or room, whichever is more.
        tokens = max(sum(map(len, texts_of(payload))) + images, payload[profile.limit_field])
        look = _FIRST_LOOK
        while True:
            async with endpoint.limits.place(tokens) as place:
                begun = await self._begin_when_affordable(call, reserve)
                place.used = isinstance(begun, Attempt)
                if isinstance(begun, Recorded):
                    return RequestResult(begun.body, sent=False)
                if isinstance(begun, Attempt):
                    return await self._send(request, endpoint, begun, place.storm)
            await asyncio.sleep(look)
            look = min(2 * look, _LONGEST_LOOK)

    async def _begin_when_affordable(self, call: Call, reserve: int) -> Attempt | Recorded | InProgress:
        """The attempt, as the ledger allows it. What is in flight has more set aside than it will cost: so a budget is
        not used up before all of it has come home, and one question at a time waits to see.
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
                    if self._in_flight:
                        await self._settled.wait()

    async def _begin(self, call: Call, reserve: int) -> Attempt | Recorded | InProgress:
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

    async def _send(self, request: Request, endpoint: Endpoint, attempt: Attempt, storm: int) -> RequestResult:
        came = False
        try:
            body = await endpoint.post(request)
            came = True
            completion = read_completion(body)
            answer = answer_of(body, completion, endpoint.profile, attempt, request.payload)
            await self._ledger.answered(attempt, answer)
            self._tally.add_cost(answer.cost)
            endpoint.limits.answered()
            # What is no completion was paid for as well. It ends its question; a host that sends nothing else, the run.
            refusal = overrun(answer, attempt, endpoint.profile, endpoint.host)
            if completion.readable:
                endpoint.count_answered()
            else:
                refusal = endpoint.count_unanswered("unreadable") or refusal
            if refusal is not None:
                raise refusal
            return RequestResult(body)
        except RequestFailed as failure:
            await self._ledger.failed(attempt, failure.status, billed=failure.billed)
            if failure.status == "http_429":
                endpoint.limits.flooded(storm)
            if failure.refusal is not None:
                raise failure.refusal from None
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
        self._error = self._error or error
        self._stopping.set()
        self._settle(0)

    def _settle(self, ended: int = 1) -> None:
        self._in_flight -= ended
        self._settled.set()
        self._settled = asyncio.Event()


@asynccontextmanager
async def _deferred_interrupt(stop: Callable[[], None]) -> AsyncIterator[None]:
    """The first SIGINT calls `stop`, and takes effect when the block is left; the second one does at once. In the main
    thread alone: others never see the signal.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return
    loop = asyncio.get_running_loop()

    def restore() -> bool:
        was_waiting = loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
        return was_waiting

    def first() -> None:
        restore()
        stop()

    loop.add_signal_handler(signal.SIGINT, first)
    try:
        yield
    finally:
        if not restore():  # it came
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0)  # where the handler cancels this task
