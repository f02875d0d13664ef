"""Asking in batches: OpenAI's Batch API, at a share of the price, within a day.

What is to be asked stands in the ledger before anything leaves, and every line bears its key, so the next process can
find and collect the batch of one that died: by its id or, where that was never received, by its label, which names the
ledger. What a batch did not answer is asked again, in another; nothing that it answered is.
"""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from pipelines.errors import BudgetSpent, HostRefused, RequestError
from pipelines.llm.completions import ABOUT_ONE, code_of, read_completion, verdict_of
from pipelines.llm.cost import worst_case
from pipelines.llm.failures import InvalidReplies
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Answer, Attempt, Batch, Call, Recorded
from pipelines.llm.money import Usage
from pipelines.llm.profiles import Profile, price
from pipelines.llm.progress import Tally
from pipelines.llm.providers.endpoint import (
    MOST_IN_A_ROW,
    REFUSED_HINT,
    Endpoint,
    Redirected,
    TooLarge,
    no_answers,
    redirected,
    refusal,
    reply_bytes,
)
from pipelines.llm.providers.pending import PendingRequest, answer_of, call_of, overrun
from pipelines.llm.providers.retry import RetryPolicy, is_retried
from pipelines.llm.questions import NO_ANSWER, OVER_BUDGET

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")

MOST_REQUESTS = 50_000  # in one file: the API's
MOST_BYTES = 200_000_000
# Of a file of results, in memory at once: ours.
_LINES_AT_ONCE = 500
_BYTES_AT_ONCE = 1 << 24
_SETTLED_AT_ONCE = 500
_CLEARING_TRIES = 2  # of one file in one run: ours
_LISTED_AT_ONCE = 100
_CLOCKS_DIFFER = 3600.0  # seconds between the host's clock and ours, at most
_ENDPOINT: Final = "/v1/chat/completions"
_ENDED = frozenset({"completed", "expired", "failed", "cancelled"})
_REFUSED = {f"http_{status}" for status in ABOUT_ONE}

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds; the figures are ours."""

    first: float = 10.0  # between two looks at a batch, doubling
    longest: float = 300.0  # of any two looks or tries
    appears: float = 120.0  # as long may a batch that was made, without an answer to us, stay out of the host's list
    gone: float = 3 * 86400.0  # an older batch may be forgotten; a younger one is asked for with the wrong key
    tries: int = 6  # how often a call is put into a batch, and how often the host is asked the same thing
    again: float = 1.0  # before the host is asked the same thing again, doubling


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that no batch has answered: the word for why, of the last try, and the `reason` of the reply for it."""

    status: str
    tries: int
    reason: str = NO_ANSWER


async def ask_in_batches(
    stage: str,
    requests: Sequence[PendingRequest[Any]],
    endpoint: Endpoint,
    ledger: Ledger,
    budget: int | None,
    tally: Tally,
    counts: InvalidReplies,
) -> None:
    """Ends the requests of one model: each round in one go, and what has to be repaired in the next round. Raises as
    `BatchSender.ask` does, HostRefused where the host refuses or answers none of many, and TooManyInvalid.
    """
    profile = endpoint.profile
    while requests:
        calls = {pending.request.key: call_of(stage, pending.request, profile) for pending in requests}
        results = await BatchSender(endpoint.client, ledger, profile, budget).ask(list(calls.values()))
        tally.add_cost(sum(result.cost for result in results.values() if isinstance(result, Recorded)))
        _require_some_answer(endpoint, results.values())
        for pending in requests:
            result = results[pending.request.key]
            pending.called = True
            if isinstance(result, Recorded):
                pending.take(result.body)
            elif result.status in _REFUSED and pending.request.lengthened:
                pending.take(verdict_of(b"", lengthened=True) or b"")  # so long a reply is what it cannot give
            elif result.reason == OVER_BUDGET:
                pending.fail(result.status, result.reason)
            else:
                pending.fail(f"{result.status}, tries: {result.tries}", result.reason)
            if pending.reply is not None:
                tally.reply(pending.reply, cached=False)
                counts.count(pending.reply)
        counts.require()
        requests = [pending for pending in requests if pending.reply is None]


def _require_some_answer(endpoint: Endpoint, results: Collection[Recorded | Failure]) -> None:
    """A host that refuses all questions does not mean their texts; one that answers none is down."""
    sent = [result for result in results if isinstance(result, Recorded) or result.reason != OVER_BUDGET]
    statuses = {result.status for result in sent if isinstance(result, Failure)}
    if len(sent) < MOST_IN_A_ROW or any(isinstance(result, Recorded) for result in sent):
        return
    which = f"all {len(sent)} questions of a batch"
    if refused := statuses & _REFUSED:
        codes = " and ".join(sorted(status.removeprefix("http_") for status in refused))
        what = f"answers {codes} to {which}: nothing more is sent"
        raise refusal(endpoint.profile, endpoint.host, what, REFUSED_HINT)
    raise no_answers(endpoint.profile, endpoint.host, f"none to {which}", ", ".join(sorted(statuses)))


class BatchSender:
    """Sends the calls of one model in batches (`client` with `max_retries=0`), and collects their answers."""

    def __init__(
        self,
        client: "AsyncOpenAI",
        ledger: Ledger,
        profile: Profile,
        budget: int | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._patience = patience or Patience()
        self._host = BatchHost(client, profile, self._patience)
        self._ledger, self._profile, self._budget = ledger, profile, budget
        self._tries: Counter[str] = Counter()
        self._last: dict[str, str] = {}  # of a call that failed: why
        self._final: dict[str, Failure] = {}  # calls that would fail again, or that no budget of this size allows
        self._overrun: HostRefused | None = None  # by the first call that cost more than it could

    async def ask(self, calls: Sequence[Call]) -> dict[str, Recorded | Failure]:
        """The answers to all calls, by key; from the ledger where they are in it.

        First it collects what earlier batches of this profile have left. Cancelled, it leaves its batches at the host:
        the next one collects them. What does not fit into the budget waits until other batches have ended; what would
        not fit into the whole of it is a Failure.

        Raises UnknownPrice; RequestError where the price has no share for batches; BudgetSpent where nothing that is
        left fits into what is left, with all answers kept; HostRefused where the host refuses the batch as such.
        """
        if price(self._profile).batch is None:
            raise RequestError(
                f"nobody has said what {self._profile.alias} costs in a batch",
                where=f"the model profile {self._profile.alias!r}",
                hint="give its price a batch (0.5: half of it), or ask without --batch",
            )
        wanted = {call.key: call for call in calls}
        for batch in self._ledger.batches.take_over(self._profile.alias, self._host.url):
            await self._collect_left(batch)
        results: dict[str, Recorded | Failure] = {}
        delay = self._patience.first
        while True:
            results |= self._ledger.recorded([key for key in wanted if key not in results])
            for key in wanted.keys() - results.keys():
                if self._tries[key] >= self._patience.tries:
                    self._final.setdefault(key, Failure(self._last[key], self._tries[key]))
                if key in self._final:
                    results[key] = self._final[key]
            waiting = [call for key, call in wanted.items() if key not in results]
            if not waiting:
                return {key: results[key] for key in wanted}
            if not await self._round(waiting):  # other processes have sent all that is left
                await asyncio.sleep(delay)
                delay = min(2 * delay, self._patience.longest)

    async def _round(self, waiting: Sequence[Call]) -> bool:
        """Asks what waits, as far as the budget goes. False where nothing could be done."""
        running: list[Batch] = []
        moved = False
        stopped: Exception | None = None
        for part in parts(waiting):
            try:
                reserves = [worst_case(self._profile, json.loads(call.payload), batch=True) for call in part]
                planned = self._ledger.batches.plan(self._profile.alias, self._host.url, part, reserves, self._budget)
                for key, error in planned.too_expensive.items():
                    self._final[key] = Failure(error.figures, 0, OVER_BUDGET)
                moved = moved or planned.recorded or bool(planned.too_expensive)
                if planned.batch is not None:
                    running.append(await self._send(planned.batch, [attempt.call for attempt in planned.attempts]))
            except Exception as error:  # noqa: BLE001 - raised when what has left is collected
                stopped = error
                break
            if planned.refused is not None:
                # A budget has room again once a batch has cost less than was set aside.
                stopped = None if running and isinstance(planned.refused, BudgetSpent) else planned.refused
                break
        ends = await asyncio.gather(*map(self._collect, running), return_exceptions=True)
        for end in (stopped, *ends):
            if end is not None:
                raise end
        return moved or bool(running)

    async def _send(self, batch: Batch, calls: Iterable[Call]) -> Batch:
        """Uploads the file and makes the batch. The ledger knows of each step before the next."""
        content = b"".join(line(call.key, call.payload) for call in calls)
        try:
            file = await self._host.upload(self._name(batch), content)
            batch = self._ledger.batches.sent(batch, file=file)
            vendor = await self._host.make(file, self._label(batch), batch.created)
        except HostRefused as error:
            await self._end(batch, "refused", billed=False)
            raise error from None
        return self._ledger.batches.sent(batch, vendor=vendor.id)

    def _name(self, batch: Batch) -> str:
        """By this the host's file is found where its id was never received."""
        return f"gongqing-{self._ledger.id[:8]}-{batch.id}.jsonl"

    def _label(self, batch: Batch) -> dict[str, str]:
        """By this the host's batch is found."""
        return {"ledger": self._ledger.id, "part": str(batch.id)}

    async def _collect_left(self, batch: Batch) -> None:
        """A batch of a process that died."""
        self._host.doubtful.add(self._name(batch))
        if batch.vendor is not None:
            await self._collect(batch, left=True)
        elif batch.file is None:  # the process died before it could be made; its file may be there
            await self._end(batch, "never_sent", billed=False)
        elif (vendor := await self._host.find(self._label(batch), batch.created)) is not None:
            await self._collect(self._ledger.batches.sent(batch, vendor=vendor.id), left=True)
        elif await self._host.delete(batch.file):  # the file waited for it in vain
            await self._end(batch, "never_sent", billed=False)
        else:
            await self._end_forgotten(batch)

    async def _collect(self, batch: Batch, *, left: bool = False) -> None:
        """Waits for a batch, keeps all that it brought, ends the rest. One that failed ends the run, unless it was
        `left` by another process: why it failed may be mended by now.
        """
        vendor = await self._host.ended(str(batch.vendor))
        if vendor is None:
            await self._end_forgotten(batch)
            return
        batch = _with_results(batch, vendor)
        unsettled = self._ledger.batches.attempts(batch)
        self._tries.update(unsettled.keys())

        async def take(lines: list[bytes]) -> None:
            ended = [(unsettled.pop(key), result) for key, result in results(lines).items() if key in unsettled]
            sent = self._ledger.batches.payloads(attempt for attempt, _ in ended)
            await asyncio.gather(*(self.settle(one, result, sent.get(one.call.key)) for one, result in ended))

        for file in (batch.output, batch.errors):
            if file is not None:
                await self._host.read(file, take)
        # What a batch that was broken off says nothing of was never begun; of one that says it is complete, who knows.
        complete = vendor.status == "completed"
        await self._end(batch, "missing" if complete else vendor.status, billed=None if complete else False)
        if self._overrun is not None:
            raise self._overrun
        if vendor.status == "failed":
            errors = (vendor.errors and vendor.errors.data) or ()
            codes = sorted({code for one in errors if (code := code_of({"code": one.code}))})
            lines = sorted({one.line for one in errors if one.line is not None})
            failed = HostRefused(
                f"{self._profile.alias} refused batch {batch.id}: {', '.join(codes) or 'no reason given'}"
                + (f" (lines {lines[:5]})" if lines else ""),
                where=f"{self._host.url}, {vendor.id}",
                hint="look at the profile and at the account's limits for batches, or ask without --batch",
            )
            if not left:
                raise failed
            log.warning("%s; its questions are asked again", failed.what)

    async def settle(self, attempt: Attempt, result: Mapping[str, Any], sent: bytes | None) -> None:
        """One line: an answer, a verdict on its text, or a word for why there is none. By what was `sent`, None where
        it was forgotten, a reported usage is believed or not.
        """
        response = result.get("response")
        response = response if isinstance(response, dict) else {}
        status = code if isinstance(code := response.get("status_code"), int) else None
        body = json.dumps(response.get("body"), ensure_ascii=False).encode(errors="surrogatepass")
        key = attempt.call.key
        if status == 200:
            payload = None if sent is None else json.loads(sent)
            answer = answer_of(body, read_completion(body), self._profile, attempt, payload, batch=True)
            await self._ledger.answered(attempt, answer)
            self._overrun = self._overrun or overrun(answer, attempt, self._profile, self._host.url)
        elif status in ABOUT_ONE and (verdict := verdict_of(body, lengthened=False)) is not None:
            free = Answer(verdict, None, None, Usage(0, 0, 0), 0)
            await self._ledger.answered(attempt, free)
        else:
            if status is None:  # never run: the batch ended first
                self._last[key] = code_of(result.get("error")) or "missing"
            else:
                self._last[key] = f"http_{status}"
                if not is_retried(status):
                    self._final[key] = Failure(self._last[key], self._tries[key])
            await self._ledger.failed(attempt, self._last[key], billed=False)

    async def _end_forgotten(self, batch: Batch) -> None:
        """Raises HostRefused where the host should know of a batch: it is a batch of another account."""
        if not self._may_be_forgotten(batch):
            raise HostRefused(
                f"the host of {self._profile.alias} knows nothing of batch {batch.id} of "
                f"{batch.created:%Y-%m-%d %H:%M}",
                where=f"{self._host.url}, {batch.vendor or batch.file}",
                hint="ask with the key of the account that it was made with: else its answers are paid for again",
            )
        await self._end(batch, "gone", billed=None)

    def _may_be_forgotten(self, batch: Batch) -> bool:
        return time.time() - batch.created.timestamp() >= self._patience.gone

    async def _end(self, batch: Batch, status: str, *, billed: Literal[False] | None) -> None:
        """Ends a batch, and what of it has not ended; then its files go."""
        left = self._ledger.batches.attempts(batch)
        self._last |= dict.fromkeys(left, status)
        attempts = list(left.values())
        for start in range(0, len(attempts), _SETTLED_AT_ONCE):
            some = attempts[start : start + _SETTLED_AT_ONCE]
            await asyncio.gather(*(self._ledger.failed(attempt, status, billed=billed) for attempt in some))
        self._ledger.batches.end(batch, status)
        await self._clear(batch, known=batch.file is not None or self._name(batch) not in self._host.doubtful)

    async def clear_left(self, batch: Batch) -> None:
        """Deletes the files of a batch that ended in an earlier run, also those that only the host can name."""
        if batch.host != self._host.url:
            log.warning("%s of batch %d stays with %s, which nobody asks now", batch.file, batch.id, batch.host)
            return
        if batch.file is None:
            self._host.doubtful.add(self._name(batch))
        vendor = None
        if batch.vendor is not None:
            try:
                vendor = await self._host.get(batch.vendor, 1)
            except HostRefused as error:
                self._warn_of_files(batch, " and ".join(batch.files), error)
                return
        await self._clear(batch if vendor is None else _with_results(batch, vendor), known=vendor is not None)

    async def _clear(self, batch: Batch, *, known: bool) -> None:
        """Deletes the files of a batch that has ended: they hold what people wrote. One that cannot be deleted is a
        warning, and left to the next run; so are files that the host does not know, unless the batch is `known` to it:
        the host of another account says the same.
        """
        left = False
        files, name = list(batch.files), self._name(batch)
        if name in self._host.doubtful:
            try:
                files += [file for file in await self._host.files_named(name) if file not in files]
            except HostRefused as error:
                left = True
                self._warn_of_files(batch, name, error)
        for file in files:
            try:
                known = await self._host.delete(file, _CLEARING_TRIES) or known
            except HostRefused as error:
                left = True
                self._warn_of_files(batch, file, error)
        if not left and (known or self._may_be_forgotten(batch)):
            self._ledger.batches.cleared(batch)

    def _warn_of_files(self, batch: Batch, files: str, error: HostRefused) -> None:
        kind = type(error.__cause__ or error).__name__
        log.warning(
            "%s of batch %d stays with %s (%s); the next --batch tries again", files, batch.id, self._host.url, kind
        )


def _with_results(batch: Batch, vendor: Any) -> Batch:
    return replace(batch, output=vendor.output_file_id or batch.output, errors=vendor.error_file_id or batch.errors)


class BatchHost:
    """A host's Batch API, asked again where that may help. Batches are the SDK's objects. Every method raises
    HostRefused: where the host cannot be reached, or answers nothing but errors.
    """

    def __init__(self, client: "AsyncOpenAI", profile: Profile, patience: Patience) -> None:
        self._longest_line = reply_bytes(profile)
        self.url = str(client.base_url)
        self._client, self._profile, self._patience = client, profile, patience
        self.doubtful: set[str] = set()  # names of files that may be there more often than we know

    async def upload(self, name: str, content: bytes) -> str:
        """The id of a new file."""

        async def unheard() -> None:
            self.doubtful.add(name)

        upload = partial(self._client.files.create, file=(name, content), purpose="batch")
        return str(self._require(await self._again(upload, None, unheard), "id").id)

    async def files_named(self, name: str) -> list[str]:
        """The ids of the files for batches that have a name."""
        first = await self._again_or_none(lambda: self._client.files.list(purpose="batch"))
        return [file.id async for file in self._pages(first) if file.filename == name]

    async def make(self, file: str, label: Mapping[str, str], since: datetime) -> Any:
        """A new batch of a file. It may have been made though no answer came: then it is found by its label."""
        make = partial(self._client.batches.create, input_file_id=file, endpoint=_ENDPOINT, metadata=dict(label))
        batch = await self._again(partial(make, completion_window="24h"), None, lambda: self.find(label, since))
        return self._require(batch, "id")

    async def find(self, label: Mapping[str, str], since: datetime) -> Any | None:
        """The batch with a label, made after `since`; None where there is none, and none can still appear."""
        until = time.time() + self._patience.appears
        while True:
            last = time.time() >= until
            first = await self._again(lambda: self._client.batches.list(limit=_LISTED_AT_ONCE))
            async for batch in self._pages(first):  # newest first
                if batch.created_at < since.timestamp() - _CLOCKS_DIFFER:
                    break
                if (batch.metadata or {}) == label:
                    return batch
            if last:
                return None
            await asyncio.sleep(max(0.0, until - time.time()))

    async def ended(self, batch_id: str) -> Any | None:
        """A batch once it has ended, however it did; None where the host knows of none."""
        delay = self._patience.first
        while (batch := await self.get(batch_id)) is not None and batch.status not in _ENDED:
            await asyncio.sleep(delay)
            delay = min(2 * delay, self._patience.longest)
        return batch

    async def get(self, batch_id: str, tries: int | None = None) -> Any | None:
        """A batch as it stands; None where the host knows of none."""
        batch = await self._again_or_none(lambda: self._client.batches.retrieve(batch_id), tries)
        return None if batch is None else self._require(batch, "status")

    async def read(self, file: str, take: Callable[[list[bytes]], Awaitable[None]]) -> None:
        """Hands the lines of a file on as they come, some at a time, so that no file has to fit into memory; none where
        the host does not know it. Where the connection breaks, it is read from its beginning: lines come again.
        """
        import httpx2
        import openai

        async def stream() -> None:
            lines: list[bytes] = []
            size = 0
            try:
                async with self._client.files.with_streaming_response.content(file) as response:
                    async for one in whole_lines(response.iter_bytes(), self._longest_line):
                        lines.append(one)
                        size += len(one)
                        if len(lines) >= _LINES_AT_ONCE or size >= _BYTES_AT_ONCE:
                            await take(lines)
                            lines, size = [], 0
            except httpx2.RequestError as error:  # the SDK's own errors end with the headers
                raise openai.APIConnectionError(request=error.request) from error
            await take(lines)

        await self._again_or_none(stream)

    async def delete(self, file: str, tries: int | None = None) -> bool:
        """Whether the host had a file; it has it no more."""
        return await self._again_or_none(lambda: self._client.files.delete(file), tries) is not None

    async def _pages(self, page: Any) -> AsyncIterator[Any]:
        while page is not None:
            for one in page.data:
                yield one
            page = await self._again(page.get_next_page) if page.has_next_page() else None

    async def _again_or_none(self, ask: Callable[[], Awaitable[T]], tries: int | None = None) -> T | None:
        """As `_again`, and None for what the host does not know."""
        import openai

        try:
            return await self._again(ask, tries)
        except HostRefused as error:
            if isinstance(error.__cause__, openai.NotFoundError):
                return None
            raise

    async def _again(
        self,
        ask: Callable[[], Awaitable[T]],
        tries: int | None = None,
        unheard: Callable[[], Awaitable[T | None]] | None = None,
    ) -> T:
        """Asks until the host answers or refuses. `unheard` looks whether what was asked has happened all the same."""
        import openai

        policy = RetryPolicy(tries or self._patience.tries, self._patience.again, self._patience.longest, jitter=0)
        try:
            async for attempt in policy.attempts():
                with attempt:
                    try:
                        return await ask()
                    except (openai.APIConnectionError, openai.APIStatusError) as error:
                        # Where somebody on the way gave up, the host may have done it all the same.
                        known = isinstance(error, openai.APIStatusError) and not is_retried(error.status_code)
                        answered = known or isinstance(error, openai.RateLimitError)
                        if unheard is not None and not answered and (result := await unheard()) is not None:
                            return result
                        raise
        except (openai.APIConnectionError, openai.APIStatusError, Redirected, TooLarge) as error:
            raise self._refused(error) from error
        raise AssertionError("the last try returns or raises")

    def _require(self, received: Any, name: str) -> Any:
        """What came with status 200, if it has what the SDK does not look for."""
        if not isinstance(getattr(received, name, None), str):
            raise self._refusal(f"sends what has no {name}")
        return received

    def _refused(self, error: Exception) -> HostRefused:
        if isinstance(error, Redirected):
            return redirected(self._profile, self.url, error)
        if isinstance(error, TooLarge):
            return self._refusal(f"sends more than {error.most} bytes, which nobody reads")
        status = getattr(error, "status_code", None)
        return self._refusal(f"answers {status}" if status else "cannot be reached")

    def _refusal(self, what: str) -> HostRefused:
        return HostRefused(
            f"the host of {self._profile.alias} {what}: no batch can be asked",
            where=f"{self.url}, model {self._profile.model}",
            hint="look at key, model and base_url of the profile; what has left is collected by the next --batch",
        )


def parts(calls: Iterable[Call]) -> list[list[Call]]:
    """The calls in files of at most MOST_REQUESTS and MOST_BYTES. Raises RequestError for one that no file can hold."""
    cut: list[list[Call]] = []
    room = 0
    for call in calls:
        size = len(line(call.key, call.payload))
        if size > MOST_BYTES:
            raise RequestError(f"a request of {size} bytes is too large for a batch", hint="ask without --batch")
        if not cut or size > room or len(cut[-1]) == MOST_REQUESTS:
            cut.append([])
            room = MOST_BYTES
        cut[-1].append(call)
        room -= size
    return cut


def line(key: str, payload: bytes) -> bytes:
    """The line of a call in a batch's file."""
    named = json.dumps(key).encode()
    return b'{"custom_id":%b,"method":"POST","url":"%b","body":%b}\n' % (named, _ENDPOINT.encode(), payload)


async def whole_lines(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    """The lines of a file that comes in pieces, split at line feeds alone: a text may hold other line breaks. A line of
    more than `most` bytes is left out, and not held; the log says how many there were.
    """
    begun: bytearray | None = bytearray()  # None: too long
    left_out = 0
    async for chunk in chunks:
        for place, piece in enumerate(chunk.split(b"\n")):
            if place:
                if begun is not None and begun.strip():
                    yield bytes(begun)
                begun = bytearray()
            if begun is not None and len(begun) + len(piece) > most:
                begun = None
                left_out += 1
            elif begun is not None:
                begun += piece
    if begun is not None and begun.strip():
        yield bytes(begun)
    if left_out:
        log.warning("%d lines of a batch's results are longer than a reply may be", left_out)


def results(lines: Iterable[bytes]) -> dict[str, Mapping[str, Any]]:
    """Lines of a file of results by their key; of those that cannot be read the log says how many there are."""
    by_key: dict[str, Mapping[str, Any]] = {}
    unread = 0
    for one in lines:
        try:
            result = json.loads(one)
            by_key[result["custom_id"]] = result
        except (ValueError, KeyError, TypeError, RecursionError):
            unread += 1
    if unread:
        log.warning("%d lines of a batch's results cannot be read", unread)
    return by_key
