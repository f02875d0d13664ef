"""Provider `openai`: any host of OpenAI's kind, asked once for each payload. What is in the ledger needs no call.

A stage that was asked before is read from the ledger alone: no event loop, no SDK, no key.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipelines.core.home import Home
from pipelines.errors import BudgetSpent, RequestError
from pipelines.llm.failures import InvalidReplies
from pipelines.llm.interface import BUDGET, Estimate, ModelEstimate
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Batch, Budget
from pipelines.llm.money import amount, bound, nano, worst_case
from pipelines.llm.profiles import Profile, prices, profile, profiles
from pipelines.llm.progress import Progress, Told
from pipelines.llm.providers.pending import PendingRequest, go_on, newest
from pipelines.llm.questions import OVER_BUDGET, Question, Reply
from pipelines.settings import Llm

if TYPE_CHECKING:
    from pipelines.llm.providers.endpoint import Endpoint

# Bodies of so many questions are in memory at once.
_AT_ONCE = 2000

log = logging.getLogger(__name__)


@contextmanager
def opened(
    home: Path,
    llm: Llm,
    budget: Decimal | None,
    *,
    of: str = BUDGET,
    batch: bool = False,
    progress: Progress | None = None,
) -> Iterator["OpenAIClient"]:
    """The client of a home. Left in order, and with every stage asked to its end, it closes the budget `of` that name;
    broken off, the budget stays open, and the next one goes on with what it had spent.
    """
    asking = OpenAIClient(Home(home).ledger, llm, budget, of=of, batch=batch, progress=progress)
    try:
        yield asking
        if budget is not None and not asking.broken_off and (ledger := asking.ledger) is not None:
            standing = ledger.budget(of)
            if standing is not None:
                ledger.close_budget(standing)
    finally:
        asking.close()


class OpenAIClient:
    """Answers from the ledger, and from the models themselves what is not in it. The ledger's file is made when
    something is to be sent: what only looks makes none.
    """

    provider: Literal["openai"] = "openai"

    def __init__(
        self,
        path: Path,
        llm: Llm,
        budget: Decimal | None,
        *,
        of: str = BUDGET,
        batch: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Raises RequestError for a budget that is no amount, and for profiles that are none."""
        if budget is not None:
            nano(budget)
        self._path, self._of = path, of
        self._llm, self._cap, self._batch, self._progress = llm, budget, batch, progress
        self._profiles = profiles(llm.profiles)
        self._ledger: Ledger | None = None
        self._runner: asyncio.Runner | None = None
        self._endpoints: dict[str, Endpoint] = {}
        self._budget: Budget | None = None
        self._cleared = not batch
        self.broken_off = False  # whether any stage was not asked to its end

    @property
    def ledger(self) -> Ledger | None:
        """The ledger of the home, None where it has none yet. Raises LedgerError."""
        if self._ledger is None and self._path.exists():
            self._ledger = Ledger(self._path)
        return self._ledger

    def _made_ledger(self) -> Ledger:
        if self._ledger is None:
            self._ledger = Ledger(self._path)
        return self._ledger

    def models(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The aliases, as they are. Raises UnknownName."""
        return tuple(profile(self._profiles, alias).alias for alias in wanted)

    def ask(self, stage: str, questions: Sequence[Question[Any]]) -> list[Reply[Any]]:
        """The replies, in the order of the questions. One that alone may cost more than the whole budget is not asked,
        and its reply says so (OVER_BUDGET).

        What the ledger holds of a model that replied with too much that is no answer ([llm] failures) is no answer
        either: those questions are asked again, as their next sample, and what came of that stands from then on.

        Raises:
            RequestError: where an answer would cost and there is no budget; NoHost, NoKey, UnknownPrice.
            BudgetSpent: where the budget is used up, or is too small for every one of the questions.
            HostRefused, TooManyInvalid, LedgerError: with what was in flight settled, and all that was answered kept.
        """
        told = Told(self._progress, stage, len(questions))
        told.now()
        self._clear_files()
        replies: list[Reply[Any] | None] = [None] * len(questions)
        waiting: list[tuple[int, PendingRequest[Any]]] = []
        for place, pending in self._standing(stage, questions):
            if pending.reply is None:
                waiting.append((place, pending))
            else:
                told.reply(pending.reply, cached=True)
            replies[place] = pending.reply
        if waiting:
            waiting.sort(key=itemgetter(0))
            self._send(stage, [pending for _, pending in waiting], told)
        for place, pending in waiting:
            replies[place] = pending.reply
        self._require_one_that_fits([pending for _, pending in waiting], replies)
        return [reply for reply in replies if reply is not None]

    def estimate(self, stage: str, questions: Sequence[Question[Any]]) -> Estimate:
        """The worst case of what the ledger cannot answer. Sends nothing, needs no key. Raises UnknownPrice."""
        counts: dict[str, Counter[str]] = {}
        asked: set[str] = set()
        unpriced: dict[str, Profile] = {}
        for _, pending in self._standing(stage, questions):
            count = counts.setdefault(pending.profile.alias, Counter())
            if pending.reply is not None or pending.request.key in asked:
                count["cached"] += 1
                continue
            asked.add(pending.request.key)
            if pending.profile.price is None:
                unpriced[pending.profile.alias] = pending.profile
                continue
            most = bound(pending.request.payload)
            count["calls"] += 1
            count["tokens_in"] += most.prompt
            count["tokens_out"] += most.completion
            count["cost"] += worst_case(
                pending.profile, pending.request.payload, batch=self._in_batch(pending.profile.alias)
            )
        prices(unpriced.values())
        by_model = {
            alias: ModelEstimate(
                count["calls"], count["cached"], count["tokens_in"], count["tokens_out"], amount(count["cost"])
            )
            for alias, count in counts.items()
        }
        costly = [alias for alias, count in counts.items() if count["cost"]]
        return Estimate.of(by_model, self._currency(costly) or "USD")

    def close(self) -> None:
        """Closes the connections and the ledger. What was asked stays in it."""
        try:
            if self._runner is not None:
                endpoints, self._endpoints = list(self._endpoints.values()), {}
                self._run(_close(endpoints))
                _apart(self._runner.close)
                self._runner = None
        finally:
            if self._ledger is not None:
                self._ledger.close()

    def _pending(self, questions: Sequence[Question[Any]]) -> Iterator[PendingRequest[Any]]:
        """A request a question, as far as the ledger leads it."""
        for start in range(0, len(questions), _AT_ONCE):
            requests = [
                PendingRequest(question, profile(self._profiles, question.model), self.provider, self._llm.repairs)
                for question in questions[start : start + _AT_ONCE]
            ]
            go_on(requests, self._recorded)
            yield from requests

    def _standing(self, stage: str, questions: Sequence[Question[Any]]) -> Iterator[tuple[int, PendingRequest[Any]]]:
        """A request a question, with its place, as far as the ledger leads it; again from its beginning what has no
        answer of a model that is beyond the limit of invalid replies.
        """
        counts = InvalidReplies(stage, self._llm.failures)
        doubtful: list[tuple[int, PendingRequest[Any]]] = []
        for start in range(0, len(questions), _AT_ONCE):
            requests = newest(list(self._pending(questions[start : start + _AT_ONCE])), self._recorded)
            for place, pending in enumerate(requests, start):
                if pending.reply is not None:
                    counts.count(pending.reply)
                    if pending.reply.may_come_right or pending.reply.is_of_the_text:
                        doubtful.append((place, pending))
                        continue
                yield place, pending
        for place, pending in doubtful:
            assert pending.reply is not None
            if not counts.doubts(pending.reply):
                yield place, pending
                continue
            again = pending.anew()
            go_on([again], self._recorded)  # it may have been begun
            yield place, again

    def _recorded(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        ledger = self.ledger
        return {} if ledger is None else {key: one.body for key, one in ledger.recorded(keys).items()}

    def _send(self, stage: str, requests: list[PendingRequest[Any]], told: Told) -> None:
        """Ends the requests by asking. Everything that can be known to be wrong is said before anything leaves."""
        aliases = list(dict.fromkeys(pending.profile.alias for pending in requests))
        budget = self._opened_budget(stage, aliases, len(requests))
        well = False
        try:
            self._run(self._sent(stage, requests, aliases, budget, told))
            well = True
        except BudgetSpent as error:
            raise error.with_waiting(sum(pending.reply is None for pending in requests)) from None
        finally:
            self.broken_off = self.broken_off or not well

    def _require_one_that_fits(self, requests: list[PendingRequest[Any]], replies: Sequence[Reply[Any] | None]) -> None:
        """Raises BudgetSpent where not one of a stage's questions fits into the whole budget: it is not the texts that
        are at fault then, and an empty table would stand for all of them.
        """
        if not requests or any(reply is None or reply.reason != OVER_BUDGET for reply in replies):
            return
        self.broken_off = True
        budget = self._budget
        assert budget is not None
        raise BudgetSpent(
            spent=amount(budget.spent),
            held=amount(budget.held),
            wanted=amount(
                min(
                    worst_case(pending.profile, pending.request.payload, batch=self._in_batch(pending.profile.alias))
                    for pending in requests
                )
            ),
            cap=amount(budget.cap),
            currency=budget.currency,
            waiting=len(requests),
        )

    async def _sent(
        self, stage: str, requests: list[PendingRequest[Any]], aliases: list[str], budget: int | None, told: Told
    ) -> None:
        from pipelines.llm.providers.batching import in_batches
        from pipelines.llm.providers.sending import Backoff, Sending

        for alias in aliases:  # all of them first: a key that is missing is said before the other model is asked
            self._endpoint(alias)
        ledger = self._made_ledger()
        sending = Sending(
            stage,
            self._endpoints,
            ledger,
            budget=budget,
            attempts=self._llm.attempts,
            backoff=Backoff(),
            told=told,
            counts=InvalidReplies(stage, self._llm.failures, in_time=True),
        )
        await sending.run([pending for pending in requests if not self._in_batch(pending.profile.alias)])
        ends = await asyncio.gather(
            *(
                in_batches(
                    stage,
                    [pending for pending in requests if pending.profile.alias == alias],
                    self._endpoints[alias],
                    ledger,
                    budget,
                    told,
                    InvalidReplies(stage, self._llm.failures),
                )
                for alias in aliases
                if self._in_batch(alias)
            ),
            return_exceptions=True,
        )
        for end in ends:
            if end is not None:
                raise end

    def _endpoint(self, alias: str) -> "Endpoint":
        """The endpoint of a model. Raises UnknownName, NoHost, NoKey, SettingsError."""
        from pipelines.llm.providers.endpoint import Endpoint

        if alias not in self._endpoints:
            self._endpoints[alias] = Endpoint(profile(self._profiles, alias), self._llm)
        return self._endpoints[alias]

    def _clear_files(self) -> None:
        """Once in a run with batches: what those of earlier runs have left with their hosts is deleted there."""
        if not self._cleared and (ledger := self.ledger) is not None:
            self._cleared = True
            self._run(self._clear(ledger))

    async def _clear(self, ledger: Ledger) -> None:
        from pipelines.llm.providers.batch.asking import clear_files

        by_alias: dict[str, list[Batch]] = {}
        for batch in await ledger.batches.uncleared():
            by_alias.setdefault(batch.alias, []).append(batch)
        for alias, batches in by_alias.items():
            try:
                endpoint = self._endpoint(alias)
            except RequestError as error:
                files = ", ".join(file for batch in batches for file in batch.files)
                log.warning("%s: stays with the host of %s: %s", files, alias, error.what)
            else:
                await clear_files(endpoint.client, ledger, endpoint.profile, batches)

    def _opened_budget(self, stage: str, aliases: list[str], waiting: int) -> int | None:
        """The id of the budget to spend from; None where nothing costs."""
        currency = self._currency(aliases)
        if currency is None:
            return None
        if self._cap is None:
            raise RequestError(
                f"{waiting} questions of {stage} cost money, and there is no budget",
                where=f"the models {', '.join(aliases)}",
                hint=f"--budget AMOUNT, in {currency}; --estimate says how much it may take",
            )
        if self._budget is None:
            self._budget = self._made_ledger().open_budget(self._cap, currency, self._of)
        return self._budget.id

    def _currency(self, aliases: Sequence[str]) -> str | None:
        """The currency of all that costs; None where nothing does. Raises UnknownPrice, RequestError for two."""
        known = prices(self._profiles[alias] for alias in aliases)
        found = sorted({one.currency for one in known if one.input or one.output})
        if len(found) > 1:
            raise RequestError(
                f"the models are paid in {' and '.join(found)}, and a budget is in one currency",
                where=f"the models {', '.join(aliases)}",
                hint="give the prices of all in one currency, in a file of profiles of your own",
            )
        return found[0] if found else None

    def _in_batch(self, alias: str) -> bool:
        told = self._profiles[alias].price
        return self._batch and told is not None and told.batch is not None

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs in the LLM client's own loop, so that connections and limits outlive a stage."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        _apart(self._runner.run, work)


def _apart(run: Callable[..., Any], *given: Any) -> None:
    """Runs it here or, where a loop is at work already (a notebook), in a thread that has none."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        run(*given)
        return
    with ThreadPoolExecutor(1) as thread:
        thread.submit(run, *given).result()


async def _close(endpoints: Sequence["Endpoint"]) -> None:
    for endpoint in endpoints:
        await endpoint.close()
