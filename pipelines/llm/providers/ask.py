"""Asking: from a question to its reply, with every attempt in the ledger before it leaves and again when it is over.

A question is asked, perhaps repaired, and ends. Each step follows from the body of the step before alone, so what was
paid for is followed again without a call. Whatever ends a run early (a spent budget, a host that refuses everything, a
full disk, Ctrl-C) lets what is in flight come home first, since it is paid for; nothing new leaves meanwhile.
"""

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from pipelines.errors import BudgetSpent, HostRefused, Interrupted
from pipelines.llm import payload as payloads
from pipelines.llm.completions import Completion, read_completion
from pipelines.llm.failures import InvalidReplies
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Answer, Attempt, Call, InProgress, Recorded
from pipelines.llm.money import amount, owed, worst_case
from pipelines.llm.payload import Request, canonical
from pipelines.llm.profiles import Profile, price, profile, profiles
from pipelines.llm.progress import Progress, Tally
from pipelines.llm.providers.endpoint import Endpoint, RequestFailed
from pipelines.llm.questions import NO_ANSWER, OVER_BUDGET, InvalidReply, Provenance, Question, Reply, read
from pipelines.settings import Llm

T = TypeVar("T")
Recordings = Callable[[Sequence[str]], Mapping[str, bytes]]  # the bodies that are recorded, by key

# A question that is asked again is another sample of it, this far from those that a stage draws itself: ours.
_NEXT_SAMPLE = 1000
# More questions are at work than may be in flight, so that one that waits to ask again leaves no place empty: ours.
_WORKERS_A_PLACE = 2
# Seconds between tries where the host names none: doubling from the first to the longest, and up to the jitter more.
BACKOFF = {"wait_initial": 0.5, "wait_max": 60.0, "wait_jitter": 1.0}
# Seconds between looks at what another process has in flight.
_FIRST_LOOK, _LONGEST_LOOK = 0.05, 2.0

log = logging.getLogger(__name__)


class PendingRequest(Generic[T]):
    """Where a question stands: `request` is what is to be asked next, `reply` what came of it, None until the end."""

    def __init__(self, question: Question[T], profile: Profile, provider: str, repairs: int) -> None:
        self.question = question
        self.profile = profile
        self.reply: Reply[T] | None = None
        self.called = False  # whether anything was sent for it in this run
        self._provider = provider
        self._repairs = self._repairs_left = repairs
        self._payload = payloads.payload(question, profile)
        self.request = Request.of(self._payload, question.sample)

    @property
    def is_unusable(self) -> bool:
        """Whether it has ended with what the model said in the place of an answer."""
        return self.reply is not None and (self.reply.may_come_right or self.reply.is_of_the_text)

    def take(self, body: bytes) -> None:
        """The body that answers `request`: ends the question, or makes the next request."""
        completion = read_completion(body, thinks=self.profile.thinking)
        if not completion.readable:  # it was paid for all the same: once
            self._end(Completion(), reason="invalid_reply", detail="unreadable")
        elif completion.verdict is not None:
            reason = "refused" if completion.verdict == "refused" else "cut_short"
            self._end(completion, reason=reason, detail=completion.detail)
        elif completion.finish_reason == "length":
            longer = payloads.lengthened(self._payload, self.profile)
            if self._repairs_left == 0 or longer is None:
                tokens = completion.usage.completion or self._payload[self.profile.limit_field]
                self._end(completion, reason="cut_short", detail=f"{tokens} tokens")
            else:
                self._payload = longer
                self._repair(Request.of(longer, self.question.sample, lengthened=True))
        else:
            self._read(completion)

    def next_sample(self) -> "PendingRequest[T]":
        """The same question from its beginning, as its next sample: another request, and another answer."""
        question = replace(self.question, sample=self.question.sample + _NEXT_SAMPLE)
        return PendingRequest(question, self.profile, self._provider, self._repairs)

    def fail(self, detail: str, reason: str = NO_ANSWER) -> None:
        """No request for it came through, or none was sent."""
        self._end(Completion(), reason=reason, detail=detail)

    def _read(self, completion: Completion) -> None:
        try:
            self._end(completion, read(self.question, completion.content))
        except InvalidReply as error:
            if self._repairs_left == 0:
                self._end(completion, reason="invalid_reply", detail=error.problem)
                return
            language = self.question.prompt.language
            repaired = payloads.repaired(self._payload, completion.content, error.sentence, language)
            self._repair(Request.of(repaired, self.question.sample))

    def _repair(self, request: Request) -> None:
        self._repairs_left -= 1
        self.request = request

    def _end(
        self, completion: Completion, value: T | None = None, *, reason: str | None = None, detail: str | None = None
    ) -> None:
        name, model = self.question.prompt.name, self.profile.model
        provenance = Provenance(self._provider, model, completion.served, name, self.request.key)
        self.reply = Reply(self.question, value, provenance, completion.reasoning, reason, detail)


class ProfileClient:
    """A client that asks by profiles, or answers as if it did."""

    provider: Literal["openai", "replay", "written"]

    def __init__(self, llm: Llm, progress: Progress | None = None) -> None:
        self._llm, self._progress = llm, progress
        self._profiles = profiles(llm.profiles)

    def models(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The aliases, as they are. Raises UnknownName."""
        return tuple(profile(self._profiles, alias).alias for alias in wanted)

    def _recorded_requests(self, questions: Iterable[Question[Any]]) -> list[PendingRequest[Any]]:
        """A request a question, as far as the recordings lead it."""
        requests = [
            PendingRequest(question, profile(self._profiles, question.model), self.provider, self._llm.repairs)
            for question in questions
        ]
        go_on(requests, self._recordings)
        return requests

    def _recordings(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """The bodies that are recorded, by key."""
        raise NotImplementedError


def go_on(requests: Iterable[PendingRequest[Any]], recordings: Recordings) -> None:
    """Takes each as far as the bodies that are recorded lead it."""
    ahead = list(requests)
    while ahead:
        bodies = recordings(list(dict.fromkeys(pending.request.key for pending in ahead)))
        ahead = [pending for pending in ahead if pending.request.key in bodies]
        for pending in ahead:
            pending.take(bodies[pending.request.key])
        ahead = [pending for pending in ahead if pending.reply is None]


def newest(requests: Sequence[PendingRequest[Any]], recordings: Recordings) -> list[PendingRequest[Any]]:
    """The requests; in the place of an unusable one, how the same question ended when it was asked again."""
    latest = list(requests)
    places = [place for place, pending in enumerate(latest) if pending.is_unusable]
    while places:
        again = [latest[place].next_sample() for place in places]
        go_on(again, recordings)
        ended = [(place, pending) for place, pending in zip(places, again, strict=True) if pending.reply is not None]
        for place, pending in ended:
            latest[place] = pending
        places = [place for place, pending in ended if pending.is_unusable]
    return latest


def call_of(stage: str, request: Request, profile: Profile) -> Call:
    """A request as the ledger knows it. Raises UnknownPrice."""
    currency = price(profile).currency
    body = canonical(request.payload)
    return Call(request.key, stage, profile.alias, profile.model, body, request.sample, currency)


def answer_of(
    body: bytes,
    completion: Completion,
    profile: Profile,
    attempt: Attempt,
    payload: Mapping[str, Any] | None,
    *,
    batch: bool = False,
) -> Answer:
    """A body of status 200 as the ledger keeps it: it was paid for, whatever it is (`pipelines.llm.money.owed`)."""
    usage, cost = owed(profile, completion.usage, payload, attempt.reserve, reply=completion.written, batch=batch)
    return Answer(body, completion.served, completion.finish_reason, usage, cost, attempt.call.currency)


def overrun(answer: Answer, attempt: Attempt, profile: Profile, host: str) -> HostRefused | None:
    """Why nothing more may be sent after a call that cost more than it could by its profile; None where it did not."""
    if answer.cost <= attempt.reserve:
        return None
    usage, currency = answer.usage, attempt.call.currency
    return HostRefused(
        f"{profile.alias} tells {usage.prompt} tokens in and {usage.completion} out of one call, "
        f"{amount(answer.cost):f} {currency}, where {amount(attempt.reserve):f} was set aside: nothing more is sent",
        where=f"{host}, model {profile.model}",
        hint="look at max_tokens and price of the profile: the cap of a budget holds only if they are right",
    )


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
        import stamina

        # stamina would log every retry as a warning. The ledger has them all, and a progress bar is no place for them.
        stamina.instrumentation.set_on_retry_hooks(())
        self._stage, self._endpoints, self._ledger, self._tally = stage, endpoints, ledger, tally
        self._budget, self._attempts = budget, attempts
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
            waiting, places = iter(theirs), _WORKERS_A_PLACE * endpoint.limits.concurrency.most
            workers += [asyncio.create_task(self._work(waiting)) for _ in range(min(len(theirs), places))]
        stopping = asyncio.create_task(self._stopping.wait())
        everybody = asyncio.gather(*workers)
        try:
            async with _deferred_interrupt(self._interrupt):
                first: set[asyncio.Future[Any]] = {everybody, stopping}
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
                while self._error is not None and self._in_flight:
                    await self._settlement()
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
        import stamina

        call = call_of(self._stage, request, endpoint.profile)
        tries = 0
        try:
            async for attempt in stamina.retry_context(
                on=_worth_another, attempts=self._attempts, timeout=None, **BACKOFF
            ):
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
        """One try. Raises RequestFailed."""
        reserve, tokens = worst_case(endpoint.profile, request.payload), _about(request, endpoint.profile)
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
                    await self._settlement()

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
        """Sends what the ledger has allowed, and writes down what came. Raises RequestFailed."""
        came = False
        try:
            body = await endpoint.post(request)
            came = True
            completion = read_completion(body)
            answer = answer_of(body, completion, endpoint.profile, attempt, request.payload)
            await self._ledger.answered(attempt, answer)
            self._tally.add_cost(answer.cost)
            endpoint.limits.concurrency.answered()
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
                endpoint.limits.concurrency.flooded(storm)
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
    """Tokens as vendors count them against a limit a minute: characters of the text or room, whichever is more."""
    characters = sum(len(message["content"]) for message in request.payload["messages"])
    room: int = request.payload[profile.limit_field]
    return max(characters, room)


@asynccontextmanager
async def _deferred_interrupt(stop: Callable[[], None]) -> AsyncIterator[None]:
    """Within the block the first SIGINT calls `stop`, and does what it would have done when the block is left; the
    second one does that at once. In the main thread alone: others never see the signal.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return
    loop = asyncio.get_running_loop()
    came = False

    def first() -> None:
        nonlocal came
        came = True
        restore()
        stop()

    def restore() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)

    loop.add_signal_handler(signal.SIGINT, first)
    try:
        yield
    finally:
        restore()
        if came:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0)  # where the handler cancels this task
