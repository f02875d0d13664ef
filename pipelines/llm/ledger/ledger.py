"""The ledger: every request that left, what came back, what it cost. No question is paid for twice.

    ledger = Ledger(Home(home).ledger)
    match await ledger.begin(call, reserve=worst_case(profile, payload), budget=budget.id):
        case Attempt() as attempt:
            ...                                        # send it
            await ledger.answered(attempt, answer)     # or failed(attempt, "http_429", billed=False)

An attempt is on the disk before its request leaves. What a process had under way when it died is lost, and listed: a
host without idempotency keys cannot be asked whether it was billed, so the reserve stays set aside. Nothing that was
answered is lost. Several processes may share the file, on a local disk.
"""

import asyncio
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from sqlite3 import Connection
from threading import Lock
from typing import Self

from pipelines.errors import LedgerBusy, LedgerError, RequestError
from pipelines.llm.ledger import reading, sessions
from pipelines.llm.ledger.batches import Batches
from pipelines.llm.ledger.file import LedgerFile
from pipelines.llm.ledger.packing import packed
from pipelines.llm.ledger.reading import utc
from pipelines.llm.ledger.records import (
    Answer,
    Attempt,
    Budget,
    Call,
    Elsewhere,
    Exchange,
    OpenAttempt,
    Recorded,
    Spend,
)
from pipelines.llm.ledger.writer import Begin, End, Writer
from pipelines.llm.money import nano

_KEYS_AT_ONCE = 1000
_POLL = 0.25  # seconds between looks at a request that somebody else has under way


class Ledger:
    """The ledger in a file. Close it, or use it in a `with` block: what is under way then counts as lost.

    Every method raises LedgerError: DamagedLedger for a file that is damaged or not ours, LedgerFull where the device
    is full, LedgerBusy where another process holds it for a minute.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = LedgerFile(path)
        self._writer = Writer(self._file)
        self._reading = Lock()
        self._open = True

    @property
    def id(self) -> str:
        """Names this ledger in what is left with a host."""
        return self._file.id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Writes what waits, ends the session. Closing twice does nothing."""
        if self._open:
            self._open = False
            try:
                self._writer.close()
            finally:
                self._file.close()

    # Answers

    def recorded(self, keys: Sequence[str]) -> dict[str, Recorded]:
        """The answers that there are, by key."""
        found: dict[str, Recorded] = {}
        with self._reads() as db:
            for some in _chunks(keys):
                found |= reading.recorded(db, some)
        return found

    def known(self, keys: Sequence[str]) -> set[str]:
        """The keys that have an answer, without reading it."""
        found: set[str] = set()
        with self._reads() as db:
            for some in _chunks(keys):
                found |= reading.known(db, some)
        return found

    def exchanges(self, stages: Sequence[str] | None = None) -> Iterator[Exchange]:
        """All requests with their answers, of some stages or of all, in the order of their keys."""
        after = ""
        while True:
            with self._reads() as db:
                some = reading.exchanges(db, stages, after, _KEYS_AT_ONCE)
            if not some:
                return
            yield from some
            after = some[-1].answer.key

    def bodies(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Key, request and answer of all requests, in the order of their keys; an answer that is missing is empty."""
        after = ""
        while True:
            with self._reads() as db:
                some = reading.bodies(db, after, _KEYS_AT_ONCE)
            if not some:
                return
            yield from some
            after = some[-1][0]

    # Attempts

    async def begin(self, call: Call, *, reserve: int, budget: int | None) -> Attempt | Recorded | Elsewhere:
        """Leave to send a request; it stands in the ledger, with its reserve set aside, before this returns.

        Every Attempt that it gives must be ended, by `answered` or `failed`, whatever happens; one that the caller
        was cancelled over, before it got it, ends by itself.

        Args:
            call: the request.
            reserve: the most that it may cost, in nano-units of its currency.
            budget: the id of the budget that it counts against; None: it counts against none.

        Returns:
            Attempt: send it. Recorded: it has been answered meanwhile. Elsewhere: somebody alive has it under way.

        Raises:
            BudgetSpent: where spent + held + reserve would pass the cap. Nothing is recorded.
            RequestError: for a budget that is closed or of another currency.
            LedgerBusy: where it is in a batch that nobody has collected.
        """
        job = Begin(call, packed(call.payload), reserve, budget)
        self._writer.submit(job)
        waiting = asyncio.wrap_future(job.future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not job.future.cancel():
                job.future.add_done_callback(lambda _: self._never_sent(job))
            raise

    async def begin_when_free(
        self, call: Call, *, reserve: int, budget: int | None, poll: float = _POLL
    ) -> Attempt | Recorded:
        """As `begin`; waits while somebody else has the request under way, and takes over where they die."""
        while isinstance(begun := await self.begin(call, reserve=reserve, budget=budget), Elsewhere):
            await asyncio.sleep(poll)
        return begun

    async def answered(self, attempt: Attempt, answer: Answer) -> Recorded:
        """Keeps an answer, whatever it is worth: it was paid for. Answer, cost and end are one transaction."""
        if answer.currency != attempt.call.currency:
            raise RequestError(
                f"a call that was begun in {attempt.call.currency} cannot end in {answer.currency}",
                hint="take both from the profile's price",
            )
        at = await self._end(End(attempt, "answered", 0, answer.cost, answer, packed(answer.body)))
        return Recorded(
            key=attempt.call.key,
            body=answer.body,
            served=answer.served,
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            cost=answer.cost,
            currency=answer.currency,
            alias=attempt.call.alias,
            at=utc(at),
        )

    async def failed(self, attempt: Attempt, status: str, *, billed: bool | None) -> None:
        """Ends an attempt that brought no answer.

        Args:
            attempt: which.
            status: one word: http_429, timeout, connection …
            billed: False: nothing is owed, the reserve is free again. None: nobody knows, it stays set aside. True:
                the host has billed it, nobody knows how much: the reserve counts as spent.
        """
        reserve = attempt.reserve
        await self._end(End(attempt, status, reserve if billed is None else 0, reserve if billed else 0))

    async def _end(self, job: End) -> float:
        """Carried out even where whoever waits for it is cancelled."""
        self._writer.submit(job)
        return await asyncio.shield(asyncio.wrap_future(job.future))

    def _never_sent(self, job: Begin) -> None:
        if self._open and not job.future.cancelled() and job.future.exception() is None:
            begun = job.future.result()
            if isinstance(begun, Attempt):
                self._writer.submit(End(begun, "never_sent", 0))

    # Batches

    @property
    def batches(self) -> Batches:
        """What was asked in batches and has not been collected."""
        return Batches(self._file, self._writer)

    # Budgets

    def open_budget(self, cap: Decimal, currency: str, of: str) -> Budget:
        """The open budget of a name, with this cap; what was spent from it before counts. A new one where none is open.

        Raises RequestError where it is open in another currency, or `cap` is no amount.
        """
        limit = nano(cap)

        def work(db: Connection) -> Budget:
            there = next(iter(reading.open_budgets(db, of)), None)
            if there is None:
                db.execute(
                    "INSERT INTO budget (of, cap, currency, opened) VALUES (?, ?, ?, ?)",
                    (of, limit, currency, time.time()),
                )
            elif there.currency != currency:
                raise RequestError(
                    f"the budget of {of} that was broken off is in {there.currency}, not in {currency}",
                    hint=f"give --budget in {there.currency}, or close it",
                )
            else:
                db.execute("UPDATE budget SET cap = ? WHERE id = ?", (limit, there.id))
            [opened] = reading.open_budgets(db, of)
            return opened

        return self._writer.do(work)

    def budget(self, of: str) -> Budget | None:
        """The open budget of a name, as it stands."""
        with self._reads() as db:
            return next(iter(reading.open_budgets(db, of)), None)

    def budgets(self) -> list[Budget]:
        """All open budgets, oldest first: of what is at work, and of what was broken off."""
        with self._reads() as db:
            return reading.open_budgets(db)

    def taken(self, of: str) -> Decimal:
        """What was spent from the budgets of a name, open and closed, with what is still held of them."""
        with self._reads() as db:
            return reading.taken(db, of)

    def close_budget(self, budget: Budget | int) -> None:
        """From here on nothing is taken from it; the next one of its name begins at nothing."""
        number = budget if isinstance(budget, int) else budget.id
        self._writer.do(
            lambda db: (
                db.execute(
                    "UPDATE budget SET closed = ? WHERE id = ? AND closed IS NULL", (time.time(), number)
                ).rowcount
            )
        )

    # For people

    def spend(self) -> list[Spend]:
        """Money and tokens by stage, model, day and currency."""
        with self._reads() as db:
            return reading.spend(db)

    def open_attempts(self) -> list[OpenAttempt]:
        """What is under way, and what was under way when its process died. The latter stay listed: nobody knows."""
        with self._reads() as db:
            found = reading.open_attempts(db)
        folder = sessions.beside(self.path)
        living = {name: sessions.alive(folder, name) for _, name in found}
        return [replace(one, lost=one.lost or (one.batch is None and not living[name])) for one, name in found]

    def check(self) -> None:
        """Reads the whole file. Raises DamagedLedger where something in it is wrong."""
        with self._reads():
            self._file.check()

    def forget(self, keys: Iterable[str]) -> int:
        """Deletes every byte of the requests and answers under these keys, and the keys; what they cost stays. How many
        there were.

        Call it while nothing is asked. Raises LedgerBusy where another process reads meanwhile, which keeps the bytes
        in the log beside the file: then do it again.
        """
        wanted = list(dict.fromkeys(keys))

        def work(db: Connection) -> int:
            gone = 0
            for some in _chunks(wanted):
                gone += db.execute(
                    "DELETE FROM request WHERE key IN (SELECT value FROM json_each(?))", (some,)
                ).rowcount
                db.execute("DELETE FROM answer WHERE key IN (SELECT value FROM json_each(?))", (some,))
                # A key is a hash of the whole question: whoever guesses the question could prove that it was asked.
                db.execute(
                    "UPDATE attempt SET key = 'forgotten-' || id"
                    " WHERE ended IS NOT NULL AND key IN (SELECT value FROM json_each(?))",
                    (some,),
                )
            return gone

        gone = self._writer.do(work)
        if self._file.written_back():
            return gone
        raise LedgerBusy(
            f"{gone} requests are forgotten, but their bytes are still in the log beside the ledger",
            where=self.path,
            hint="end the other processes that use the ledger, and do it again",
        )

    def compact(self) -> None:
        """Writes the file again, without what was deleted from it. Raises LedgerBusy where another process reads it."""
        if not self._file.compacted():
            raise LedgerBusy(
                "the ledger cannot be written anew while another process reads it",
                where=self.path,
                hint="end the other processes that use the ledger, and do it again",
            )

    @contextmanager
    def _reads(self) -> Iterator[Connection]:
        """The connection that reads, for one thread at a time."""
        with self._reading, self._file.translated():
            if not self._open:
                raise LedgerError("the ledger is closed", where=self.path, hint="open it again")
            yield self._file.reads


def _chunks(keys: Sequence[str]) -> Iterator[str]:
    """JSON lists of them, some at a time."""
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        yield json.dumps(keys[start : start + _KEYS_AT_ONCE])
