"""Asking in batches: OpenAI's Batch API, at a share of the price, within a day.

What is to be asked stands in the ledger before anything leaves, and every line bears its key, so a batch can be found
and collected by whoever comes after a process that died: by its id or, where that was never heard, by what it says of
the ledger. What a batch did not answer is asked again, in another; nothing that it answered is.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pipelines.errors import BudgetSpent, HostRefused, RequestError
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Answer, Attempt, Batch, Call, Recorded
from pipelines.llm.money import Usage, worst_case
from pipelines.llm.profiles import Profile, price
from pipelines.llm.providers import settling
from pipelines.llm.providers.batch.host import BatchHost, Patience
from pipelines.llm.providers.batch.lines import line, parts, results
from pipelines.llm.providers.bodies import ABOUT_ONE, code_of, may_pass, verdict_of
from pipelines.llm.questions import NO_ANSWER, OVER_BUDGET

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")

_SETTLED_AT_ONCE = 500
_CLEARING_TRIES = 2  # of one file in one run: ours

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that no batch has answered: the word for why, of the last try, and the `reason` of the reply for it."""

    key: str
    status: str
    tries: int
    reason: str = NO_ANSWER


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
        BudgetSpent: where nothing that is left fits into what is left of the budget, with all answers kept that came
            before. What would not fit into the whole of it is a Failure.
        HostRefused: where the host refuses the batch as such.
    """
    if price(profile).batch is None:
        raise RequestError(
            f"nobody has said what {profile.alias} costs in a batch",
            where=f"the model profile {profile.alias!r}",
            hint="give its price a batch (0.5: half of it), or ask without --batch",
        )
    return await _Asking(client, ledger, profile, budget, patience or Patience()).ask(calls)


async def clear_files(
    client: "AsyncOpenAI",
    ledger: Ledger,
    profile: Profile,
    batches: Iterable[Batch],
    *,
    patience: Patience | None = None,
) -> None:
    """Deletes what batches of a profile that ended in earlier runs have left with its host: people's texts.

    What cannot be deleted is a warning, and stays `uncleared` in the ledger. Raises LedgerError.
    """
    asking = _Asking(client, ledger, profile, None, patience or Patience())
    for batch in batches:
        await asking.clear_left(batch)


class _Asking:
    def __init__(
        self, client: "AsyncOpenAI", ledger: Ledger, profile: Profile, budget: int | None, patience: Patience
    ) -> None:
        self.host = BatchHost(client, profile, patience)
        self.ledger, self.profile, self.budget, self.patience = ledger, profile, budget, patience
        self.tries: Counter[str] = Counter()
        self.last: dict[str, str] = {}  # of a call that failed: why
        self.hopeless: set[str] = set()
        self.dear: dict[str, str] = {}  # of a call that no budget of this size allows: its figures
        self.overrun: HostRefused | None = None  # by the first call that cost more than it could

    async def ask(self, calls: Sequence[Call]) -> dict[str, Recorded | Failure]:
        wanted = {call.key: call for call in calls}
        for batch in await self.ledger.batches.taken_over(self.profile.alias, self.host.url):
            await self._collect_left(batch)
        found: dict[str, Recorded | Failure] = {}
        delay = self.patience.first
        while True:
            found |= self.ledger.recorded([key for key in wanted if key not in found])
            for key in wanted.keys() - found.keys():
                if key in self.dear:
                    found[key] = Failure(key, self.dear[key], 0, OVER_BUDGET)
                elif key in self.hopeless or self.tries[key] >= self.patience.tries:
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
                planned = await self.ledger.batches.plan(self.profile.alias, self.host.url, part, reserves, self.budget)
                self.dear |= {key: error.figures for key, error in planned.dear.items()}
                moved = moved or bool(planned.recorded or planned.dear)
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
        try:
            file = await self.host.uploaded(self._name(batch), content)
            batch = await self.ledger.batches.sent(batch, file=file)
            vendor = await self.host.made(file, self._label(batch), batch.created)
        except HostRefused as error:
            await self._settle_rest(batch, "refused", billed=False)
            raise error from None
        return await self.ledger.batches.sent(batch, vendor=vendor.id)

    def _name(self, batch: Batch) -> str:
        """What the host calls the batch's file: by this it is found where nobody heard of its id."""
        return f"gongqing-{self.ledger.id[:8]}-{batch.id}.jsonl"

    def _label(self, batch: Batch) -> dict[str, str]:
        """What the host's batch says of the ledger: by this it is found."""
        return {"ledger": self.ledger.id, "part": str(batch.id)}

    # Collecting

    async def _collect_left(self, batch: Batch) -> None:
        """A batch that a process left which is no more."""
        if batch.vendor is not None:
            await self._collect(batch, left=True)
        elif batch.file is None:  # the process died before it could be made; its file may be there
            self.host.doubtful.add(self._name(batch))
            await self._settle_rest(batch, "never_sent", billed=False)
        elif (vendor := await self.host.found(self._label(batch), batch.created)) is not None:
            await self._collect(await self.ledger.batches.sent(batch, vendor=vendor.id), left=True)
        elif await self.host.removed(batch.file):  # the file waited for it in vain
            await self._settle_rest(batch, "never_sent", billed=False)
        else:
            self._require_forgettable(batch)
            await self._settle_rest(batch, "gone", billed=None)

    async def _collect(self, batch: Batch, *, left: bool = False) -> None:
        """Waits for a batch, keeps all that it brought, settles the rest.

        One that failed ends the run, unless it was `left` by another: why it failed may be mended by now.
        """
        vendor = await self.host.over(str(batch.vendor))
        if vendor is None:
            self._require_forgettable(batch)
            await self._settle_rest(batch, "gone", billed=None)
            return
        batch = _with_results(batch, vendor)
        unsettled = await self.ledger.batches.attempts(batch)
        self.tries.update(unsettled.keys())
        for file in (batch.output, batch.errors):
            if file is not None:
                await self._keep(file, unsettled)
        # What a batch that was broken off says nothing of was never begun; of one that says it is complete, who knows.
        complete = vendor.status == "completed"
        await self._settle_rest(batch, "missing" if complete else vendor.status, billed=None if complete else False)
        if self.overrun is not None:
            raise self.overrun
        if vendor.status == "failed":
            failed = self._failed(batch, vendor)
            if not left:
                raise failed
            log.warning("%s; its questions are asked again", failed.what)

    def _forgettable(self, batch: Batch) -> bool:
        """Whether it is so old that the host may know nothing of it."""
        return self.patience.clock() - batch.created.timestamp() >= self.patience.gone

    def _require_forgettable(self, batch: Batch) -> None:
        """Raises HostRefused where the host should know of a batch: else it is a batch of another account."""
        if not self._forgettable(batch):
            raise HostRefused(
                f"the host of {self.profile.alias} knows nothing of batch {batch.id} of {batch.created:%Y-%m-%d %H:%M}",
                where=f"{self.host.url}, {batch.vendor or batch.file}",
                hint="ask with the key of the account that it was made with: else its answers are paid for again",
            )

    def _failed(self, batch: Batch, vendor: Any) -> HostRefused:
        told = {(code_of({"code": one.code}), one.line) for one in (vendor.errors and vendor.errors.data) or ()}
        codes = ", ".join(sorted({code for code, _ in told if code is not None})) or "no reason given"
        lines = sorted(line for _, line in told if line is not None)
        return HostRefused(
            f"{self.profile.alias} refused batch {batch.id}: {codes}" + (f" (lines {lines[:5]})" if lines else ""),
            where=f"{self.host.url}, {vendor.id}",
            hint="look at the profile and at the account's limits for batches, or ask without --batch",
        )

    # Settling

    async def _keep(self, file: str, left: dict[str, Attempt]) -> None:
        """Settles the calls that a file of results speaks of, and takes them out of `left`."""

        async def take(lines: list[bytes]) -> None:
            told = results(lines)
            some = [(left.pop(key), result) for key, result in told.items() if key in left]
            await asyncio.gather(*(self._settle(attempt, result) for attempt, result in some))

        await self.host.read(file, take)

    async def _settle(self, attempt: Attempt, result: Mapping[str, Any]) -> None:
        """One line: an answer, a verdict on its text, or a word for why there is none."""
        response = result.get("response")
        response = response if isinstance(response, dict) else {}
        status = response.get("status_code")
        status = status if isinstance(status, int) else None
        body = json.dumps(response.get("body"), ensure_ascii=False).encode(errors="surrogatepass")
        if status == 200:
            await self._answered(attempt, body)
        elif status in ABOUT_ONE and (verdict := verdict_of(body, lengthened=False)) is not None:
            none = Usage(0, 0, 0)
            await self.ledger.answered(attempt, Answer(verdict, None, None, none, 0, attempt.call.currency))
        else:
            key = attempt.call.key
            if status is None:  # never run: the batch ended first
                self.last[key] = code_of(result.get("error")) or "missing"
            else:
                self.last[key] = f"http_{status}"
                if not may_pass(status):
                    self.hopeless.add(key)
            await self.ledger.failed(attempt, self.last[key], billed=False)

    async def _answered(self, attempt: Attempt, body: bytes) -> None:
        given, readable = settling.read(body)
        # Payloads stay in the ledger: by them what is told of a usage is believed or not.
        written = await self.ledger.batches.payload(attempt)
        payload = None if written is None else json.loads(written)
        answer = settling.answer(given, readable, body, self.profile, attempt, payload, batch=True)
        recorded = await self.ledger.answered(attempt, answer)
        self.overrun = self.overrun or settling.overrun(recorded, attempt, self.profile, self.host.url)

    async def _settle_rest(self, batch: Batch, status: str, *, billed: bool | None) -> None:
        """Ends a batch, and what of it has not ended; then its files go."""
        left = await self.ledger.batches.attempts(batch)
        self.last |= dict.fromkeys(left, status)
        for some in _some(list(left.values())):
            await asyncio.gather(*(self.ledger.failed(attempt, status, billed=billed) for attempt in some))
        await self.ledger.batches.ended(batch, status)
        await self._clear(batch)

    # Clearing

    async def clear_left(self, batch: Batch) -> None:
        """The files of a batch that ended in an earlier run, with the names that only the host knows by now."""
        if batch.host != self.host.url:
            log.warning("%s of batch %d stays with %s, which nobody asks now", batch.file, batch.id, batch.host)
            return
        if batch.file is None:
            self.host.doubtful.add(self._name(batch))
        vendor = None
        if batch.vendor is not None:
            try:
                vendor = await self.host.known(batch.vendor, 1)
            except HostRefused as error:
                self._warn_of_files(batch, " and ".join(batch.files), error)
                return
        if vendor is not None:
            batch = _with_results(batch, vendor)
        await self._clear(batch, theirs=vendor is not None)

    async def _clear(self, batch: Batch, *, theirs: bool = True) -> None:
        """Deletes the files of a batch that has ended: they hold what people wrote, and the ledger has all of it.

        A file that cannot be deleted is a warning, and the next run's. So, without one, are files that the host knows
        nothing of, unless the batch is `theirs`: the host of another account says the same.
        """
        left = False
        files = batch.files
        if batch.file is None and (name := self._name(batch)) in self.host.doubtful:
            theirs = False  # the list of another account has none of that name
            try:
                files += tuple(await self.host.named(name))
            except HostRefused as error:
                left = True
                self._warn_of_files(batch, name, error)
        for file in files:
            try:
                theirs = await self.host.removed(file, _CLEARING_TRIES) or theirs
            except HostRefused as error:
                left = True
                self._warn_of_files(batch, file, error)
        if not left and (theirs or self._forgettable(batch)):
            await self.ledger.batches.cleared(batch)

    def _warn_of_files(self, batch: Batch, files: str, error: HostRefused) -> None:
        kind = type(error.__cause__ or error).__name__
        log.warning(
            "%s of batch %d stays with %s (%s); the next --batch tries again", files, batch.id, self.host.url, kind
        )


def _with_results(batch: Batch, vendor: Any) -> Batch:
    """The batch with the files of its results, as its host tells them."""
    return replace(batch, output=vendor.output_file_id or batch.output, errors=vendor.error_file_id or batch.errors)


def _some(items: list[T]) -> list[list[T]]:
    return [items[start : start + _SETTLED_AT_ONCE] for start in range(0, len(items), _SETTLED_AT_ONCE)]
