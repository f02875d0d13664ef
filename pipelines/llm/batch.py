"""Asking in batches: OpenAI's Batch API, at a share of the price, within a day.

What is to be asked stands in the ledger before anything leaves, and every line bears its key, so a batch can be found
and collected by whoever comes after a process that died: by its id or, where that was never heard, by what it says of
the ledger. What a batch did not answer is asked again, in another; nothing that it answered is.
"""

import asyncio
import json
import logging
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pipelines.errors import BudgetSpent, HostRefused, RequestError
from pipelines.llm.ledger import Ledger
from pipelines.llm.ledger_records import Answer, Attempt, Batch, Call, Recorded
from pipelines.llm.money import Usage, cost, worst_case
from pipelines.llm.profiles import Profile, price
from pipelines.llm.providers.bodies import UnreadableBody, completion, verdict_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")

MOST_REQUESTS = 50_000  # in one file: the API's
MOST_BYTES = 200_000_000
_ENDPOINT: Final = "/v1/chat/completions"
_OVER = frozenset({"completed", "expired", "failed", "cancelled"})
_WORD = re.compile(r"[\w.-]{1,60}")
_SETTLED_AT_ONCE = 500
_LISTED_AT_ONCE = 100
_CLOCKS_DIFFER = 3600.0  # seconds between the host's clock and ours, at most

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that no batch has answered: the word for why, of the last try."""

    key: str
    status: str
    tries: int


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds; the figures are ours.

    first, longest: between two looks at a batch, doubling.
    appears: how long a batch that was made, without anybody hearing of it, may stay out of the host's list.
    gone: how old a batch is that the host may have forgotten; one that is younger is asked for with the wrong key.
    tries: how often a call is put into a batch, and how often the host is asked the same thing.
    """

    first: float = 10.0
    longest: float = 300.0
    appears: float = 120.0
    gone: float = 3 * 86400.0
    tries: int = 6
    again: float = 1.0  # before the host is asked the same thing again, doubling
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)


async def ask_batch(
    client: "AsyncOpenAI",
    ledger: Ledger,
    profile: Profile,
    calls: Sequence[Call],
    budget: int | None,
    *,
    patience: Patience | None = None,
) -> dict[str, Recorded | Failure]:
    """The answers to all calls, by key; from the ledger where they are in it.

    First it collects what earlier batches of this profile have left. Cancelled, it leaves its batches at the host: the
    next one collects them.

    Args:
        client: of the profile's host, with `max_retries=0`.
        ledger: where the calls stand before they leave, and their answers when they are there.
        profile: whose price has a share for batches.
        calls: those that are asked already are not asked again.
        budget: the id of the budget; what does not fit waits until other batches have ended.
        patience: how long to wait.

    Raises:
        UnknownPrice, RequestError: where the price, or its share in a batch, is not known.
        BudgetSpent: where nothing that is left fits into the budget, with all answers kept that came before.
        HostRefused: where the host refuses the batch as such.
    """
    if price(profile).batch is None:
        raise RequestError(
            f"nobody has said what {profile.alias} costs in a batch",
            where=f"the model profile {profile.alias!r}",
            remedy="give its price a batch (0.5: half of it), or ask without --batch",
        )
    return await _Asking(client, ledger, profile, budget, patience or Patience()).ask(calls)


class _Asking:
    def __init__(
        self, client: "AsyncOpenAI", ledger: Ledger, profile: Profile, budget: int | None, patience: Patience
    ) -> None:
        self.client, self.ledger, self.profile, self.budget, self.patience = client, ledger, profile, budget, patience
        self.host = str(client.base_url)
        self.tries: Counter[str] = Counter()
        self.last: dict[str, str] = {}  # of a call that failed: why
        self.hopeless: set[str] = set()

    async def ask(self, calls: Sequence[Call]) -> dict[str, Recorded | Failure]:
        wanted = {call.key: call for call in calls}
        for batch in await self.ledger.batches.taken_over(self.profile.alias, self.host):
            await self._collect_left(batch)
        found: dict[str, Recorded | Failure] = {}
        delay = self.patience.first
        while True:
            found |= self.ledger.recorded([key for key in wanted if key not in found])
            for key in wanted.keys() - found.keys():
                if key in self.hopeless or self.tries[key] >= self.patience.tries:
                    found[key] = Failure(key, self.last[key], self.tries[key])
            waiting = [call for key, call in wanted.items() if key not in found]
            if not waiting:
                return {key: found[key] for key in wanted}
            if not await self._round(waiting):  # others have all that is left under way
                await self.patience.sleep(delay)
                delay = min(2 * delay, self.patience.longest)

    async def _round(self, waiting: Sequence[Call]) -> bool:
        """Asks what waits, as far as the budget goes. False where others have all of it under way."""
        running: list[Batch] = []
        moved = False
        stopped: Exception | None = None
        for part in parts(waiting):
            try:
                reserves = [worst_case(self.profile, json.loads(call.payload), batch=True) for call in part]
                planned = await self.ledger.batches.plan(self.profile.alias, self.host, part, reserves, self.budget)
                moved = moved or bool(planned.recorded)
                if planned.batch is not None:
                    payloads = {attempt.call.key: attempt.call.payload for attempt in planned.attempts}
                    running.append(await self._send(planned.batch, payloads))
            except Exception as error:  # noqa: BLE001 - raised when what has left is collected
                stopped = error
                break
            if planned.refused is not None:
                # A budget has room again once a batch is settled for less than was set aside.
                stopped = None if running and isinstance(planned.refused, BudgetSpent) else planned.refused
                break
        ends = await asyncio.gather(*map(self._collect, running), return_exceptions=True)
        for end in (stopped, *ends):
            if end is not None:
                raise end
        return moved or bool(running)

    async def _send(self, batch: Batch, payloads: Mapping[str, bytes]) -> Batch:
        """Uploads the file and makes the batch. The ledger knows of each step before the next."""
        content = b"".join(line(key, payload) for key, payload in payloads.items())
        name = f"gongqing-{self.ledger.id[:8]}-{batch.id}.jsonl"
        try:
            file = await self._again(lambda: self.client.files.create(file=(name, content), purpose="batch"))
            batch = await self.ledger.batches.sent(batch, file=file.id)
            vendor = await self._made(batch)
        except HostRefused as error:
            await self._give_up(batch, "refused")
            raise error from None
        return await self.ledger.batches.sent(batch, vendor=vendor.id)

    async def _made(self, batch: Batch) -> Any:
        """The host's batch. What was asked to be made may have been made though no answer came: then it is found."""
        import openai

        delay = self.patience.again
        for last in range(self.patience.tries - 1, -1, -1):
            try:
                return await self.client.batches.create(
                    input_file_id=str(batch.file),
                    endpoint=_ENDPOINT,
                    completion_window="24h",
                    metadata={"ledger": self.ledger.id, "part": str(batch.id)},
                )
            except (openai.APIConnectionError, openai.InternalServerError) as error:
                if (vendor := await self._found(batch)) is not None:
                    return vendor
                if not last:
                    raise self._refused(error) from error
            except openai.RateLimitError as error:
                if not last:
                    raise self._refused(error) from error
                await self.patience.sleep(delay)
                delay *= 2
            except openai.APIStatusError as error:
                raise self._refused(error) from error
        raise AssertionError("the last try returns or raises")

    async def _found(self, batch: Batch) -> Any | None:
        """The host's batch by what it says of the ledger; None where there is none, and none can still appear."""
        until = self.patience.clock() + self.patience.appears
        while True:
            last = self.patience.clock() >= until
            async for vendor in self._listed():
                if vendor.created_at < batch.created.timestamp() - _CLOCKS_DIFFER:
                    break
                if (vendor.metadata or {}) == {"ledger": self.ledger.id, "part": str(batch.id)}:
                    return vendor
            if last:
                return None
            await self.patience.sleep(max(0.0, until - self.patience.clock()))

    async def _listed(self) -> AsyncIterator[Any]:
        """The host's batches, newest first."""
        page: Any = await self._again(self._first_page)
        while True:
            for vendor in page.data:
                yield vendor
            if not page.has_next_page():
                return
            page = await self._again(page.get_next_page)

    async def _first_page(self) -> Any:
        return await self.client.batches.list(limit=_LISTED_AT_ONCE)

    async def _collect_left(self, batch: Batch) -> None:
        """A batch that a process left which is no more."""
        if batch.vendor is not None:
            await self._collect(batch)
        elif batch.file is None:  # the process died before it could be made
            await self._settle_rest(batch, "never_sent", billed=False)
        elif (vendor := await self._found(batch)) is not None:
            await self._collect(await self.ledger.batches.sent(batch, vendor=vendor.id))
        elif await self._removed(batch.file):  # the file waited for it in vain
            await self._settle_rest(batch, "never_sent", billed=False)
        else:
            self._require_forgettable(batch)
            await self._settle_rest(batch, "gone", billed=None)

    async def _give_up(self, batch: Batch, status: str) -> None:
        """A batch that the host would not have. Nothing is owed, and the file with its texts is removed."""
        try:
            if batch.file is not None:
                await self._removed(batch.file)
        except HostRefused:
            log.warning("file %s of batch %d stays with the host", batch.file, batch.id)
        await self._settle_rest(batch, status, billed=False)

    async def _removed(self, file: str) -> bool:
        """Whether the host had a file; it has it no more."""
        return await self._again(self._or_none(lambda: self.client.files.delete(file))) is not None

    def _require_forgettable(self, batch: Batch) -> None:
        """Raises HostRefused where the host should know of a batch: else it is a batch of another account."""
        if self.patience.clock() - batch.created.timestamp() < self.patience.gone:
            raise HostRefused(
                f"the host of {self.profile.alias} knows nothing of batch {batch.id} of {batch.created:%Y-%m-%d %H:%M}",
                where=f"{self.host}, {batch.vendor or batch.file}",
                remedy="ask with the key of the account that it was made with: else its answers are paid for again",
            )

    async def _collect(self, batch: Batch) -> None:
        """Waits for a batch, keeps all that it brought, settles the rest."""
        vendor = await self._over(batch)
        if vendor is None:
            self._require_forgettable(batch)
            await self._settle_rest(batch, "gone", billed=None)
            return
        left = await self.ledger.batches.attempts(batch)
        self.tries.update(left.keys())
        for file in (vendor.output_file_id, vendor.error_file_id):
            if file:
                await self._keep(file, left)
        # What a batch that was broken off says nothing of was never begun; of one that says it is complete, who knows.
        complete = vendor.status == "completed"
        await self._settle_rest(batch, "missing" if complete else vendor.status, billed=None if complete else False)
        if vendor.status == "failed":
            raise self._failed(batch, vendor)

    async def _settle_rest(self, batch: Batch, status: str, *, billed: bool | None) -> None:
        """Ends a batch, and what of it has not ended."""
        left = await self.ledger.batches.attempts(batch)
        self.last |= dict.fromkeys(left, status)
        for some in _some(list(left.values())):
            await asyncio.gather(*(self.ledger.failed(attempt, status, billed=billed) for attempt in some))
        await self.ledger.batches.ended(batch, status)

    async def _over(self, batch: Batch) -> Any | None:
        """The host's batch once it has ended, however it did; None where the host knows of none."""
        delay = self.patience.first
        while True:
            vendor = await self._again(self._or_none(lambda: self.client.batches.retrieve(str(batch.vendor))))
            if vendor is None or vendor.status in _OVER:
                return vendor
            await self.patience.sleep(delay)
            delay = min(2 * delay, self.patience.longest)

    async def _keep(self, file: str, left: dict[str, Attempt]) -> None:
        """Settles the calls that a file of results speaks of, and takes them out of `left`."""
        content = await self._again(self._or_none(lambda: self._content(file)))
        results = _results(content or b"")
        for some in _some([(left.pop(key), result) for key, result in results.items() if key in left]):
            await asyncio.gather(*(self._settle(attempt, result) for attempt, result in some))

    async def _content(self, file: str) -> bytes:
        return (await self.client.files.content(file)).content

    async def _settle(self, attempt: Attempt, result: Mapping[str, Any]) -> None:
        """One line: an answer, a verdict on its text, or a word for why there is none."""
        response = result.get("response") or {}
        status = response.get("status_code")
        body = json.dumps(response.get("body"), ensure_ascii=False).encode()
        if status == 200:
            await self._answered(attempt, body)
        elif status in (400, 413) and (verdict := verdict_of(body, lengthened=False)) is not None:
            none = Usage(0, 0, 0)
            answer = Answer(verdict, None, None, none, cost(self.profile, none, batch=True), attempt.call.currency)
            await self.ledger.answered(attempt, answer)
        elif status is None:  # never run: the batch ended first
            self._fails(attempt.call.key, _word(result.get("error")))
            await self.ledger.failed(attempt, self.last[attempt.call.key], billed=False)
        else:
            self._fails(attempt.call.key, f"http_{status}")
            if status not in (408, 409, 425, 429) and status < 500:
                self.hopeless.add(attempt.call.key)
            await self.ledger.failed(attempt, self.last[attempt.call.key], billed=False)

    async def _answered(self, attempt: Attempt, body: bytes) -> None:
        try:
            given = completion(body)
        except UnreadableBody:
            self._fails(attempt.call.key, "unreadable")
            await self.ledger.failed(attempt, "unreadable", billed=None)
            return
        owed = attempt.reserve if given.usage is None else cost(self.profile, given.usage, batch=True)
        usage = given.usage or Usage(0, 0, 0)
        answer = Answer(body, given.served, given.finish_reason, usage, owed, attempt.call.currency)
        await self.ledger.answered(attempt, answer)

    def _fails(self, key: str, status: str) -> None:
        self.last[key] = status

    @staticmethod
    def _or_none(ask: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T | None]]:
        """As `ask`, and None for what the host does not know."""
        import openai

        async def asking() -> T | None:
            try:
                return await ask()
            except openai.NotFoundError:
                return None

        return asking

    async def _again(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Asks the host what may be asked twice, until it answers. Raises HostRefused."""
        import openai

        delay = self.patience.again
        for last in range(self.patience.tries - 1, -1, -1):
            try:
                return await ask()
            except (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError) as error:
                if not last:
                    raise self._refused(error) from error
                await self.patience.sleep(delay)
                delay *= 2
            except openai.APIStatusError as error:
                raise self._refused(error) from error
        raise AssertionError("the last try returns or raises")

    def _refused(self, error: Exception) -> HostRefused:
        status = getattr(error, "status_code", None)
        told = f"answers {status}" if status else "cannot be reached"
        return HostRefused(
            f"the host of {self.profile.alias} {told}: no batch can be asked",
            where=f"{self.host}, model {self.profile.model}",
            remedy="look at key, model and base_url of the profile; what has left is collected by the next --batch",
        )

    def _failed(self, batch: Batch, vendor: Any) -> HostRefused:
        told = {(_word({"code": one.code}), one.line) for one in (vendor.errors and vendor.errors.data) or ()}
        codes = ", ".join(sorted({code for code, _ in told})) or "no reason given"
        lines = sorted(line for _, line in told if line is not None)
        return HostRefused(
            f"{self.profile.alias} refused batch {batch.id}: {codes}" + (f" (lines {lines[:5]})" if lines else ""),
            where=f"{self.host}, {vendor.id}",
            remedy="look at the profile and at the account's limits for batches, or ask without --batch",
        )


def parts(calls: Iterable[Call]) -> list[list[Call]]:
    """The calls in files of at most MOST_REQUESTS and MOST_BYTES. Raises RequestError for one that no file can hold."""
    cut: list[list[Call]] = []
    room = 0
    for call in calls:
        size = len(line(call.key, call.payload))
        if size > MOST_BYTES:
            raise RequestError(f"a request of {size} bytes is too large for a batch", remedy="ask without --batch")
        if not cut or size > room or len(cut[-1]) == MOST_REQUESTS:
            cut.append([])
            room = MOST_BYTES
        cut[-1].append(call)
        room -= size
    return cut


def line(key: str, payload: bytes) -> bytes:
    """The line of a call in a batch's file."""
    return b'{"custom_id":%b,"method":"POST","url":"%b","body":%b}\n' % (
        json.dumps(key).encode(),
        _ENDPOINT.encode(),
        payload,
    )


def _results(content: bytes) -> dict[str, Mapping[str, Any]]:
    """Lines of a file by their key. Split at line feeds alone: a text may hold other line breaks."""
    found: dict[str, Mapping[str, Any]] = {}
    unread = 0
    for one in content.split(b"\n"):
        if not one.strip():
            continue
        try:
            result = json.loads(one)
            found[result["custom_id"]] = result
        except (ValueError, KeyError, TypeError):
            unread += 1
    if unread:
        log.warning("%d lines of a batch's results cannot be read", unread)
    return found


def _word(error: Any) -> str:
    """The code of an error, where it is a word. What else a host says may quote the text."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) and _WORD.fullmatch(code) else "missing"


def _some(items: list[T]) -> list[list[T]]:
    return [items[start : start + _SETTLED_AT_ONCE] for start in range(0, len(items), _SETTLED_AT_ONCE)]
