"""Provider `openai`: any host of OpenAI's kind, asked once for each payload. What is in the ledger needs no call.

A stage that was asked before is read from the ledger alone: no event loop, no SDK, no key.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pipelines.errors import BudgetSpent, RequestError
from pipelines.llm.asking import BUDGET, Estimate, ModelEstimate
from pipelines.llm.ledger import FILE, Ledger
from pipelines.llm.ledger_records import Budget
from pipelines.llm.money import amount, bound, worst_case
from pipelines.llm.profiles import price, profile, profiles
from pipelines.llm.progress import Progress, Told
from pipelines.llm.providers.walking import Walk, walk_on
from pipelines.llm.questions import Question, Reply
from pipelines.settings import Llm

# Bodies of so many questions are in memory at once.
_AT_ONCE = 2000


@contextmanager
def opened(
    home: Path,
    llm: Llm,
    budget: Decimal | None,
    *,
    of: str = BUDGET,
    batch: bool = False,
    progress: Progress | None = None,
) -> Iterator["OpenAIAsker"]:
    """The asker of a home, with its ledger open. Left in order, and with every stage asked to its end, it closes the
    budget `of` that name; broken off, the budget stays open, and the next one goes on with what it had spent.
    """
    with Ledger(home / FILE) as ledger:
        asking = OpenAIAsker(ledger, llm, budget, of=of, batch=batch, progress=progress)
        try:
            yield asking
            if budget is not None and not asking.broken_off and (standing := ledger.budget(of)) is not None:
                ledger.close_budget(standing)
        finally:
            asking.close()


class OpenAIAsker:
    """Answers from the ledger, and from the models themselves what is not in it."""

    provider: Literal["openai"] = "openai"

    def __init__(
        self,
        ledger: Ledger,
        llm: Llm,
        budget: Decimal | None,
        *,
        of: str = BUDGET,
        batch: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self._of = of
        self._ledger, self._llm, self._cap, self._batch, self._progress = ledger, llm, budget, batch, progress
        self._profiles = profiles(llm.profiles)
        self._runner: asyncio.Runner | None = None
        self._lines: dict[str, Any] = {}
        self._budget: Budget | None = None
        self.broken_off = False  # whether any stage was not asked to its end

    def models(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The aliases, as they are. Raises UnknownName."""
        return tuple(dict.fromkeys(profile(self._profiles, alias).alias for alias in wanted))

    def ask(self, stage: str, questions: Sequence[Question[Any]]) -> list[Reply[Any]]:
        """The replies, in the order of the questions.

        Raises:
            RequestError: where an answer would cost and there is no budget; NoHost, NoKey, UnknownPrice.
            BudgetSpent, HostRefused, LedgerError: with what was in flight settled, and all that was answered kept.
        """
        told = Told(self._progress, stage, len(questions))
        told.now(last=False)
        replies: list[Reply[Any] | None] = []
        waiting: list[tuple[int, Walk[Any]]] = []
        for walk in self._walked(questions):
            if walk.reply is None:
                waiting.append((len(replies), walk))
            else:
                told.reply(cached=True, failed=walk.reply.reason is not None)
            replies.append(walk.reply)
        if waiting:
            self._send(stage, [walk for _, walk in waiting], told)
        for place, walk in waiting:
            replies[place] = walk.reply
        return [reply for reply in replies if reply is not None]

    def estimate(self, stage: str, questions: Sequence[Question[Any]]) -> Estimate:  # noqa: ARG002 - as every asker
        """The worst case of what the ledger cannot answer. Sends nothing, needs no key. Raises UnknownPrice."""
        counts: dict[str, Counter[str]] = {}
        asked: set[str] = set()
        for walk in self._walked(questions):
            count = counts.setdefault(walk.profile.alias, Counter())
            if walk.reply is not None or walk.request.key in asked:
                count["cached"] += 1
                continue
            asked.add(walk.request.key)
            most = bound(walk.request.payload)
            count["calls"] += 1
            count["tokens_in"] += most.prompt
            count["tokens_out"] += most.completion
            count["cost"] += worst_case(walk.profile, walk.request.payload, batch=self._in_batch(walk.profile.alias))
        by_model = {
            alias: ModelEstimate(
                count["calls"], count["cached"], count["tokens_in"], count["tokens_out"], amount(count["cost"])
            )
            for alias, count in counts.items()
        }
        costly = [alias for alias, count in counts.items() if count["cost"]]
        return Estimate(
            calls=sum(one.calls for one in by_model.values()),
            cached=sum(one.cached for one in by_model.values()),
            tokens_in=sum(one.tokens_in for one in by_model.values()),
            tokens_out=sum(one.tokens_out for one in by_model.values()),
            cost=sum((one.cost for one in by_model.values()), Decimal(0)),
            currency=self._currency(costly) or "USD",
            by_model=by_model,
        )

    def close(self) -> None:
        """Closes the connections. What was asked stays in the ledger."""
        if self._runner is not None:
            lines, self._lines = list(self._lines.values()), {}
            self._run(_close(lines))
            _apart(self._runner.close)
            self._runner = None

    def _walked(self, questions: Sequence[Question[Any]]) -> Iterator[Walk[Any]]:
        """A walk a question, as far as the ledger leads it."""
        for start in range(0, len(questions), _AT_ONCE):
            walks = [
                Walk(question, profile(self._profiles, question.model), self.provider, self._llm.repairs)
                for question in questions[start : start + _AT_ONCE]
            ]
            walk_on(walks, self._recorded)
            yield from walks

    def _recorded(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return {key: one.body for key, one in self._ledger.recorded(keys).items()}

    def _send(self, stage: str, walks: list[Walk[Any]], told: Told) -> None:
        """Ends the walks by asking. Everything that can be known to be wrong is said before anything leaves."""
        aliases = list(dict.fromkeys(walk.profile.alias for walk in walks))
        budget = self._opened_budget(stage, aliases, len(walks))
        if self._runner is None:
            self._runner = asyncio.Runner()
        well = False
        try:
            self._run(self._sent(stage, walks, aliases, budget, told))
            well = True
        except BudgetSpent as error:
            raise error.with_waiting(sum(walk.reply is None for walk in walks)) from None
        finally:
            self.broken_off = self.broken_off or not well

    async def _sent(
        self, stage: str, walks: list[Walk[Any]], aliases: list[str], budget: int | None, told: Told
    ) -> None:
        from pipelines.llm.providers.batching import in_batches
        from pipelines.llm.providers.line import Line
        from pipelines.llm.providers.sending import Backoff, Sending

        for alias in aliases:  # all of them first: a key that is missing is said before the other model is asked
            if alias not in self._lines:
                self._lines[alias] = Line(self._profiles[alias], self._llm)
        spent = 0

        def ended(walk: Walk[Any], cost: int = 0) -> None:
            nonlocal spent
            assert walk.reply is not None
            spent += cost
            told.reply(
                cached=not walk.called, failed=walk.reply.reason is not None, spent=amount(sending.spent + spent)
            )

        sending = Sending(
            stage,
            self._lines,
            self._ledger,
            budget=budget,
            attempts=self._llm.attempts,
            backoff=Backoff(),
            ended=ended,
        )
        await sending.run([walk for walk in walks if not self._in_batch(walk.profile.alias)])
        ends = await asyncio.gather(
            *(
                in_batches(
                    stage,
                    [walk for walk in walks if walk.profile.alias == alias],
                    self._lines[alias],
                    self._ledger,
                    budget,
                    ended,
                )
                for alias in aliases
                if self._in_batch(alias)
            ),
            return_exceptions=True,
        )
        for end in ends:
            if end is not None:
                raise end

    def _opened_budget(self, stage: str, aliases: list[str], waiting: int) -> int | None:
        """The id of the budget to spend from; None where nothing costs."""
        currency = self._currency(aliases)
        if currency is None:
            return None
        if self._cap is None:
            raise RequestError(
                f"{waiting} questions of {stage} cost money, and there is no budget",
                where=f"the models {', '.join(aliases)}",
                remedy=f"--budget AMOUNT, in {currency}; --estimate says how much it may take",
            )
        if self._budget is None:
            self._budget = self._ledger.open_budget(self._cap, currency, self._of)
        return self._budget.id

    def _currency(self, aliases: Sequence[str]) -> str | None:
        """The currency of all that costs; None where nothing does. Raises UnknownPrice, RequestError for two."""
        prices = [price(self._profiles[alias]) for alias in aliases]
        found = sorted({one.currency for one in prices if one.input or one.output})
        if len(found) > 1:
            raise RequestError(
                f"the models are paid in {' and '.join(found)}, and a budget is in one currency",
                where=f"the models {', '.join(aliases)}",
                remedy="give the prices of all in one currency, in a file of profiles of your own",
            )
        return found[0] if found else None

    def _in_batch(self, alias: str) -> bool:
        told = self._profiles[alias].price
        return self._batch and told is not None and told.batch is not None

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs in the asker's own loop, so that connections and limits outlive a stage."""
        assert self._runner is not None
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


async def _close(lines: Sequence[Any]) -> None:
    for line in lines:
        await line.close()
