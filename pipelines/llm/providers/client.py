"""Provider `openai`: any host of OpenAI's kind, asked once for each payload. What is in the ledger needs no call.

A stage that was asked before is read from the ledger alone: no event loop, no SDK, no key.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pipelines.core.home import Home
from pipelines.errors import BudgetSpent, RequestError
from pipelines.llm.cost import bound, cost, worst_case
from pipelines.llm.failures import InvalidReplies
from pipelines.llm.interface import BUDGET, Estimate, ModelEstimate
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Batch, Budget
from pipelines.llm.ledger.writer import budget_spent
from pipelines.llm.money import amount, nano
from pipelines.llm.profiles import Profile, host, key, prices, profile
from pipelines.llm.progress import Progress, Tally
from pipelines.llm.providers.ask import Sender
from pipelines.llm.providers.batch import BatchSender, ask_in_batches
from pipelines.llm.providers.endpoint import Endpoint
from pipelines.llm.providers.pending import PendingRequest, ProfileClient, go_on, newest
from pipelines.llm.questions import NOT_ASKED_YET, UNPAID, Question, Reply
from pipelines.settings import Llm

T = TypeVar("T")

_AT_ONCE = 2000  # bodies of questions in memory

log = logging.getLogger(__name__)


class OpenAIClient(ProfileClient):
    """Answers from the ledger, and from the models themselves what is not in it. What only looks makes no ledger.

    Left in order, and with every stage asked to its end, it closes the budget `of` that name; broken off, the budget
    stays open, and the next client goes on with what it had spent.
    """

    provider: Literal["openai"] = "openai"

    def __init__(
        self,
        home: Path,
        llm: Llm,
        budget: Decimal | None,
        *,
        of: str = BUDGET,
        batch: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Raises RequestError for a budget that is no amount, and for profiles that are none."""
        super().__init__(llm, progress)
        if budget is not None:
            nano(budget)
        self._path, self._of = Home(home).ledger, of
        self._cap, self._batch = budget, batch
        self._opened: Ledger | None = None
        self._runner: asyncio.Runner | None = None
        self._endpoints: dict[str, Endpoint] = {}
        self._budget: Budget | None = None
        self._cleared = not batch
        self._broken_off = False  # whether any stage was not asked to its end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._end_budget()
            if self._runner is not None:
                self._run(self._close_endpoints())
                _apart(self._runner.close)
        finally:
            self._close_ledger()

    @property
    def _ledger(self) -> Ledger:
        if self._opened is None:
            self._opened = Ledger(self._path)
        return self._opened

    @property
    def _known_ledger(self) -> Ledger | None:
        return self._ledger if self._opened is not None or self._path.exists() else None

    def ask(self, stage: str, questions: Sequence[Question[Any]]) -> list[Reply[Any]]:
        """The replies, in the order of the questions. One that alone may cost more than the whole budget is not asked,
        and its reply says so (OVER_BUDGET). So does that of one before which the budget was used up (NOT_ASKED_YET):
        what is answered is not lost with it, and the budget stays open.

        What the ledger holds of a model that replied with too much that is no answer ([llm] failures) is no answer
        either: those questions are asked again, as their next sample, and what came of that stands from then on.

        Raises RequestError where an answer would cost and there is no budget; NoHost, NoKey, UnknownPrice; BudgetSpent
        where not one question has an answer, for the budget is used up, or too small for each; and, once what was in
        flight has come home, with all answers kept, HostRefused, TooManyInvalid, LedgerError.
        """
        tally = Tally(self._progress, stage, len(questions))
        tally.report()
        if not self._cleared and (ledger := self._known_ledger) is not None:  # once in a run with batches
            self._cleared = True
            self._run(self._clear(ledger.batches.uncleared()))
        requests: dict[int, PendingRequest[Any]] = {}
        for place, pending in self._pending(stage, questions):
            requests[place] = pending
            if pending.reply is not None:
                tally.reply(pending.reply, cached=True)
        in_order = [pending for _, pending in sorted(requests.items(), key=itemgetter(0))]
        waiting = [pending for pending in in_order if pending.reply is None]
        ended = self._send(stage, waiting, tally) if waiting else None
        replies = [pending.reply for pending in in_order if pending.reply is not None]
        if waiting and all(reply.reason in UNPAID for reply in replies):
            # It is not the texts that are at fault then, and an empty table would stand for all of them.
            self._broken_off = True
            assert self._budget is not None
            raise ended or budget_spent(self._budget, min(map(self._worst_case, waiting)), len(waiting))
        return replies

    def estimate(self, stage: str, questions: Sequence[Question[Any]]) -> Estimate:
        """The worst case of what the ledger cannot answer. Sends nothing, needs no key. Raises UnknownPrice."""
        counts: dict[str, Counter[str]] = {}
        seen: set[str] = set()
        unpriced: dict[str, Profile] = {}
        for _, pending in self._pending(stage, questions):
            count = counts.setdefault(pending.profile.alias, Counter())
            if pending.reply is not None or pending.request.key in seen:
                count["cached"] += 1
                continue
            seen.add(pending.request.key)
            if pending.profile.price is None:
                unpriced[pending.profile.alias] = pending.profile
                continue
            most = bound(pending.request.payload, pending.profile.image_tokens)
            count["calls"] += 1
            count["tokens_in"] += most.prompt
            count["tokens_out"] += most.completion
            count["cost"] += cost(pending.profile, most, batch=self._goes_in_batch(pending))
        prices(unpriced.values())
        costly = [alias for alias, count in counts.items() if count["cost"]]
        by_model = {
            alias: ModelEstimate(
                count["calls"], count["cached"], count["tokens_in"], count["tokens_out"], amount(count["cost"])
            )
            for alias, count in counts.items()
        }
        return Estimate.of(by_model, self._currency(costly) or "USD")

    def _worst_case(self, pending: PendingRequest[Any]) -> int:
        return worst_case(pending.profile, pending.request.payload, batch=self._goes_in_batch(pending))

    def _pending(self, stage: str, questions: Sequence[Question[Any]]) -> Iterator[tuple[int, PendingRequest[Any]]]:
        """A request a question, with its place, as far as the ledger leads it; again from its beginning what has no
        answer of a model that is beyond the limit of invalid replies.
        """
        counts = InvalidReplies(stage, self._llm.failures)
        doubtful: list[tuple[int, PendingRequest[Any]]] = []
        for start in range(0, len(questions), _AT_ONCE):
            asked = questions[start : start + _AT_ONCE]
            requests = newest(self._recorded_requests(asked, self._recordings), self._recordings)
            for place, pending in enumerate(requests, start):
                if pending.reply is not None:
                    counts.count(pending.reply)
                if pending.is_unusable:
                    doubtful.append((place, pending))
                else:
                    yield place, pending
        for place, pending in doubtful:
            assert pending.reply is not None
            if counts.doubts(pending.reply):
                pending = pending.next_sample()  # noqa: PLW2901
                go_on([pending], self._recordings)  # it may have been begun
            yield place, pending

    def _recordings(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        ledger = self._known_ledger
        return {} if ledger is None else ledger.replies(keys)

    def _send(self, stage: str, requests: list[PendingRequest[Any]], tally: Tally) -> BudgetSpent | None:
        """Ends the requests by asking. What can be known to be wrong is refused before anything leaves. Gives
        what ended the asking before the last of them.
        """
        aliases = list(dict.fromkeys(pending.profile.alias for pending in requests))
        budget = self._open_budget(stage, aliases, len(requests))
        before, self._broken_off = self._broken_off, True  # unless it comes to its end
        try:
            self._run(self._send_all(stage, requests, aliases, budget, tally))
        except BudgetSpent as error:
            go_on((pending for pending in requests if pending.reply is None), self._recordings)  # of batches that ended
            left = [pending for pending in requests if pending.reply is None]
            for pending in left:
                pending.fail(f"the budget of {error.cap:f} {error.currency} was used up", NOT_ASKED_YET)
            return error.with_waiting(len(left))
        self._broken_off = before
        return None

    async def _send_all(
        self, stage: str, requests: list[PendingRequest[Any]], aliases: list[str], budget: int | None, tally: Tally
    ) -> None:
        for alias in aliases:  # all of them first: a missing key is an error before the other model is asked
            self._endpoint(alias)
        counts = InvalidReplies(stage, self._llm.failures, in_time=True)
        sender = Sender(stage, self._endpoints, self._ledger, budget, self._llm.attempts, tally, counts)
        await sender.run([pending for pending in requests if not self._goes_in_batch(pending)])
        batched = []
        for alias in filter(self._in_batch, aliases):
            theirs = [one for one in requests if one.profile.alias == alias and self._goes_in_batch(one)]
            counts, endpoint = InvalidReplies(stage, self._llm.failures), self._endpoints[alias]
            batched.append(ask_in_batches(stage, theirs, endpoint, self._ledger, budget, tally, counts))
        for end in await asyncio.gather(*batched, return_exceptions=True):
            if end is not None:
                raise end

    def _endpoint(self, alias: str) -> Endpoint:
        """Raises UnknownName, NoHost, NoKey, SettingsError."""
        if alias not in self._endpoints:
            self._endpoints[alias] = Endpoint(profile(self._profiles, alias), self._llm)
        return self._endpoints[alias]

    async def _clear(self, batches: Sequence[Batch]) -> None:
        """Deletes with their hosts what the batches of earlier runs have left there."""
        for batch in batches:
            try:
                endpoint = self._endpoint(batch.alias)
            except RequestError as error:
                log.warning("%s: stays with the host of %s: %s", ", ".join(batch.files), batch.alias, error.what)
            else:
                await BatchSender(endpoint.client, self._ledger, endpoint.profile).clear_left(batch)

    def _open_budget(self, stage: str, aliases: list[str], waiting: int) -> int | None:
        more = "; --estimate says how much it may take"
        currency = self._require_budget(aliases, f"{waiting} questions of {stage} cost", more)
        if currency is None or self._cap is None:
            return None
        if self._budget is None:
            self._budget = self._ledger.open_budget(self._cap, currency, self._of)
        return self._budget.id

    def _require_budget(self, aliases: Sequence[str], what: str, more: str = "") -> str | None:
        """The currency of all that costs. Raises RequestError where something does, and there is no budget."""
        currency = self._currency(aliases)
        if currency is not None and self._cap is None:
            raise RequestError(
                f"{what} money, and there is no budget",
                where=f"the models {', '.join(aliases)}",
                hint=f"--budget AMOUNT, in {currency}{more}",
            )
        return currency

    def _end_budget(self) -> None:
        if self._cap is not None and not self._broken_off and (ledger := self._known_ledger) is not None:
            ledger.close_budget(self._of)

    def _currency(self, aliases: Sequence[str]) -> str | None:
        """The currency of all that costs; None where nothing does. Raises UnknownPrice, RequestError for two."""
        known = prices(self._profiles[alias] for alias in aliases)
        currencies = sorted({one.currency for one in known if one.input or one.output})
        if len(currencies) > 1:
            raise RequestError(
                f"the models are paid in {' and '.join(currencies)}, and a budget is in one currency",
                where=f"the models {', '.join(aliases)}",
                hint="give the prices of all in one currency, in a file of profiles of your own",
            )
        return currencies[0] if currencies else None

    def _in_batch(self, alias: str) -> bool:
        known = self._profiles[alias].price
        return self._batch and known is not None and known.batch is not None

    def _goes_in_batch(self, pending: PendingRequest[Any]) -> bool:
        """A picture does not: a batch is sent out of the ledger, which holds its hash alone."""
        return not pending.request.images and self._in_batch(pending.profile.alias)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        if self._runner is None:
            self._runner = asyncio.Runner()  # of the client, so that connections and limits outlive a stage
        _apart(self._runner.run, work)

    async def _close_endpoints(self) -> None:
        while self._endpoints:
            await self._endpoints.popitem()[1].close()

    def _close_ledger(self) -> None:
        if self._opened is not None:
            self._opened.close()


class PersistentClient(OpenAIClient):
    """Asks one stage's questions in a service's event loop, each as it comes. What ends it (a spent budget, a host that
    refuses) is raised for every question from then on. Left in order it closes its budget, as `OpenAIClient` does.
    """

    def __init__(
        self, home: Path, llm: Llm, stage: str, models: Iterable[str], budget: Decimal | None, *, of: str = BUDGET
    ) -> None:
        super().__init__(home, llm, budget, of=of)
        self._stage, self._aliases = stage, list(dict.fromkeys(models))
        self._tasks: set[asyncio.Task[None]] = set()
        self._bad: set[str] = set()  # keys of what came back to this process and is no answer

    def require(self) -> None:
        """Raises, before it opens anything, RequestError without a budget, UnknownName, NoHost, NoKey, UnknownPrice."""
        self.models(self._aliases)
        self._require_budget(self._aliases, f"what {self._stage} asks costs")
        for alias in self._aliases:
            host(self._profiles[alias])
            key(self._profiles[alias])

    async def __aenter__(self) -> Self:
        """Raises as `require`."""
        self.require()
        try:
            budget = self._open_budget(self._stage, self._aliases, 1)
            for alias in self._aliases:
                self._endpoint(alias)
            tally = Tally(None, self._stage, 0)
            self._sending = Sender(self._stage, self._endpoints, self._ledger, budget, self._llm.attempts, tally)
        except BaseException:
            self._close_ledger()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Leaves what is in flight, which stands in the ledger as interrupted, and closes connections and ledger."""
        try:
            if kind is None:
                self._end_budget()
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._close_endpoints()
        finally:
            self._close_ledger()

    async def reply(self, question: Question[T]) -> Reply[T]:
        """The reply to a question, which is asked once, also where the caller stops waiting. What an earlier process
        had, and may come right, is drawn again, as the next sample: its model may have been mended since. What came
        back to this process is not asked for twice. Raises BudgetSpent, HostRefused, LedgerError.
        """
        (pending,) = self._recorded_requests([question], self._recordings)
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

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is not None:  # looked at here: else asyncio logs what nobody awaited
            self._broken_off = True


def _apart(run: Callable[..., Any], *args: Any) -> None:
    """Runs it here or, where this thread has a running event loop (a notebook), in a thread that has none."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        run(*args)
        return
    with ThreadPoolExecutor(1) as thread:
        thread.submit(run, *args).result()
