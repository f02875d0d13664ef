"""The ledger: every request that left, what came back, what it cost. No question is paid for twice.

    ledger = Ledger(Home(home).ledger)
    match await ledger.begin(call, reserve=worst_case(profile, payload), budget=budget.id):
        case Attempt() as attempt:
            ...                                        # send it
            await ledger.answered(attempt, answer)     # or failed(attempt, "http_429", billed=False)

An attempt is on the disk before its request leaves. What a process had in flight when it died is lost, and listed: a
host without idempotency keys cannot be asked whether it was billed, so the reserve stays set aside. Nothing that was
answered is lost. Several processes may share the file, on a local disk.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pipelines.errors import LedgerBusy, LedgerError, RequestError
from pipelines.llm.ledger.batches import Batches
from pipelines.llm.ledger.file import LedgerFile, packed, unpacked
from pipelines.llm.ledger.records import (
    Answer,
    Attempt,
    Budget,
    Call,
    Exchange,
    InProgress,
    OpenAttempt,
    PaidCall,
    Recorded,
    Spend,
)
from pipelines.llm.ledger.writer import ANSWER_COLUMNS, Begin, End, Writer, open_budgets, recorded, to_recorded, utc
from pipelines.llm.money import amount, nano

T = TypeVar("T")

_KEYS_AT_ONCE = 1000
_REPLIES = "SELECT answer.key, answer.body FROM json_each(?) AS wanted CROSS JOIN answer ON answer.key = wanted.value"
_EXCHANGES = (
    f"SELECT {ANSWER_COLUMNS}, attempt.stage, attempt.sample, request.payload"  # noqa: S608 - ours
    " FROM answer CROSS JOIN attempt ON attempt.id = answer.attempt CROSS JOIN request ON request.key = answer.key"
    " WHERE answer.key > ?1 AND (?2 IS NULL OR attempt.stage IN (SELECT value FROM json_each(?2)))"
    " ORDER BY answer.key LIMIT ?3"
)
_BODIES = (
    "SELECT request.key, request.payload, answer.body FROM request LEFT JOIN answer ON answer.key = request.key"
    " WHERE request.key > ?1 ORDER BY request.key LIMIT ?3"
)
# In the order of Spend's fields. The day is that of the end; of the beginning where there is none.
_SPEND = (
    "SELECT stage, alias, model, served, date(coalesce(ended, started), 'unixepoch') AS day, currency,"
    " sum(status = 'answered'), sum(ended IS NOT NULL AND status NOT IN ('answered', 'lost')),"
    " sum(ended IS NULL OR status = 'lost'), sum(status = 'answered' AND repair IS TRUE),"
    " coalesce(sum(prompt), 0), coalesce(sum(cached), 0),"
    " coalesce(sum(completion), 0), sum(cost), sum(held)"
    " FROM attempt GROUP BY stage, alias, model, served, day, currency"
    " ORDER BY stage, alias, model, day, served, currency"
)
_CALLS = (
    "SELECT key, alias, served, coalesce(ended, started), status, coalesce(prompt, 0), coalesce(completion, 0), cost,"
    " held, currency FROM attempt WHERE key IN (SELECT value FROM json_each(?)) ORDER BY id"
)
_OPEN_ATTEMPTS = (
    "SELECT attempt.id, key, stage, alias, model, attempt.started, held, currency, status = 'lost', batch,"
    " session.name FROM attempt JOIN session ON session.id = attempt.session"
    " WHERE attempt.ended IS NULL OR status = 'lost' ORDER BY attempt.id"
)


class Ledger:
    """The ledger in a file. Close it, or use it in a `with` block: what is in flight then counts as lost.

    Every method raises LedgerError: DamagedLedger for a file that is damaged or not ours, LedgerFull where the device
    is full, LedgerBusy where another process holds it for a minute.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = LedgerFile(path)
        self._writer = Writer(self._file)
        self.id = self._file.id  # names this ledger in what is left with a host
        self.batches = Batches(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Writes what waits, ends the session. Closing twice does nothing."""
        if not self._file.closed:
            try:
                self._writer.close()
            finally:
                self._file.close()

    def recorded(self, keys: Sequence[str]) -> dict[str, Recorded]:
        """The answers to some keys, by key."""
        with self._file.reading() as db:
            return {key: answer for chunk in _chunks(keys) for key, answer in recorded(db, chunk).items()}

    def replies(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The bodies of the answers to some keys, by key, and nothing of their calls: twice as fast as `recorded`."""
        with self._file.reading() as db:
            rows = (row for chunk in _chunks(keys) for row in db.execute(_REPLIES, (json.dumps(chunk),)))
            return {key: unpacked(body) for key, body in rows}

    def exchanges(self, stages: Sequence[str] | None = None) -> Iterator[Exchange]:
        """All requests with their answers, of some stages or of all, in the order of their keys."""

        def read(row: Sequence[Any]) -> Exchange:
            *answer, stage, sample, payload = row
            return Exchange(stage, sample, unpacked(payload), to_recorded(answer))

        return self._by_key(_EXCHANGES, read, stages)

    def bodies(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Key, request and answer of all requests, in the order of their keys; an answer that is missing is empty."""
        return self._by_key(_BODIES, lambda row: (row[0], unpacked(row[1]), unpacked(row[2]) if row[2] else b""))

    def _by_key(
        self, query: str, read: Callable[[Sequence[Any]], T], stages: Sequence[str] | None = None
    ) -> Iterator[T]:
        """Rows in the order of their first column, some at a time."""
        after, named = "", None if stages is None else json.dumps(list(stages))
        while True:
            with self._file.reading() as db:
                rows = db.execute(query, (after, named, _KEYS_AT_ONCE)).fetchall()
                page = [read(row) for row in rows]
            if not page:
                return
            yield from page
            after = rows[-1][0]

    async def begin(self, call: Call, *, reserve: int, budget: int | None) -> Attempt | Recorded | InProgress:
        """Leave to send a request; it stands in the ledger, with its reserve set aside, before this returns.

        Attempt: send it, and end it by `answered` or `failed`, whatever happens; one that a cancelled caller never got
        ends by itself. Recorded: it has been answered meanwhile. InProgress: a living session has sent it. `reserve` is
        the most that it may cost, in nano-units, and `budget` the id of what it counts against, if anything.

        Raises BudgetSpent where spent + held + reserve would pass the cap; RequestError for a budget that is closed or
        of another currency; LedgerBusy for a request that is in a batch which nobody has collected.
        """
        job = Begin(call, reserve, budget)
        self._writer.submit(job)
        try:
            return await asyncio.shield(asyncio.wrap_future(job.future))
        except asyncio.CancelledError:
            if not job.future.cancel():
                job.future.add_done_callback(lambda _: self._end_unsent(job))
            raise

    async def answered(self, attempt: Attempt, answer: Answer) -> None:
        """Keeps an answer, whatever it is worth: it was paid for. Answer, cost and end are one transaction."""
        await self._end(End(attempt, "answered", answer=answer, body=packed(answer.body)))

    async def failed(self, attempt: Attempt, status: str, *, billed: Literal[False] | None) -> None:
        """Ends an attempt that brought no answer; `status` is one word (http_429, timeout, connection …). `billed`
        False: nothing is owed, the reserve is free again. None: nobody knows, it stays set aside.
        """
        await self._end(End(attempt, status, attempt.reserve if billed is None else 0))

    async def _end(self, job: End) -> None:
        self._writer.submit(job)
        await asyncio.shield(asyncio.wrap_future(job.future))  # carried out even where the caller is cancelled

    def _end_unsent(self, job: Begin) -> None:
        if not job.future.cancelled() and job.future.exception() is None:
            begun = job.future.result()
            if isinstance(begun, Attempt):
                with suppress(LedgerError):  # closed: it is lost then
                    self._writer.submit(End(begun, "never_sent"))

    def open_budget(self, cap: Decimal, currency: str, of: str) -> Budget:
        """The open budget of a name, with this cap; what was spent from it before counts. A new one where none is open.

        Raises RequestError where it is open in another currency, or `cap` is no amount.
        """
        limit = nano(cap)
        with self._file.transaction() as db:
            budget = {budget.of: budget for budget in open_budgets(db).values()}.get(of)
            if budget is None:
                query = "INSERT INTO budget (of, cap, currency, opened) VALUES (?, ?, ?, ?)"
                db.execute(query, (of, limit, currency, time.time()))
            elif budget.currency != currency:
                raise RequestError(
                    f"the budget of {of} that was broken off is in {budget.currency}, not in {currency}",
                    hint=f"give --budget in {budget.currency}, or close it",
                )
            else:
                db.execute("UPDATE budget SET cap = ? WHERE id = ?", (limit, budget.id))
            return {budget.of: budget for budget in open_budgets(db).values()}[of]

    def budget(self, of: str) -> Budget | None:
        """The open budget of a name, as it stands."""
        return next((budget for budget in self.budgets() if budget.of == of), None)

    def budgets(self) -> list[Budget]:
        """All open budgets, oldest first: those in use, and those of runs that were broken off."""
        with self._file.reading() as db:
            return list(open_budgets(db).values())

    def taken(self, of: str) -> Decimal:
        """What was spent from the budgets of a name, open and closed, with what is still held of them."""
        with self._file.reading() as db:
            query = "SELECT coalesce(sum(spent + held), 0) FROM budget WHERE of = ?"
            return amount(db.execute(query, (of,)).fetchone()[0])

    def close_budget(self, of: str) -> None:
        """Closes the open budget of a name, if there is one: the next one begins at nothing."""
        with self._file.transaction() as db:
            db.execute("UPDATE budget SET closed = ? WHERE of = ? AND closed IS NULL", (time.time(), of))

    def spend(self) -> list[Spend]:
        """Money and tokens by stage, model, day and currency."""
        with self._file.reading() as db:
            return [Spend(*row[:-2], *map(amount, row[-2:])) for row in db.execute(_SPEND)]

    def calls(self, keys: Iterable[str]) -> list[PaidCall]:
        """All attempts at the requests with these keys, the oldest first: it reads every attempt."""
        with self._file.reading() as db:
            rows = db.execute(_CALLS, (json.dumps(list(keys)),)).fetchall()
        return [
            PaidCall(key, alias, served, utc(at), status, prompt, completion, amount(cost), amount(held), currency)
            for key, alias, served, at, status, prompt, completion, cost, held, currency in rows
        ]

    def open_attempts(self) -> list[OpenAttempt]:
        """What is in flight, and what was in flight when its process died. The latter stay listed: nobody knows."""
        with self._file.reading() as db:
            rows = db.execute(_OPEN_ATTEMPTS).fetchall()
        alive = {name: self._file.is_alive(name) for *_, name in rows}
        return [
            OpenAttempt(
                *(*attempt, utc(at), amount(held), currency, bool(lost) or (batch is None and not alive[name]), batch)
            )
            for *attempt, at, held, currency, lost, batch, name in rows
        ]

    def check(self) -> None:
        """Reads the whole file. Raises DamagedLedger where something in it is wrong."""
        self._file.check()

    def forget(self, keys: Iterable[str]) -> int:
        """Deletes every byte of the requests and answers under these keys, and the keys; what they cost stays. How many
        there were. Raises LedgerBusy where another process reads meanwhile, which keeps the bytes in the log beside the
        file: then do it again.
        """
        gone = 0
        some = "key IN (SELECT value FROM json_each(?))"
        with self._file.transaction() as db:
            for chunk in map(json.dumps, _chunks(list(dict.fromkeys(keys)))):
                gone += db.execute(f"DELETE FROM request WHERE {some}", (chunk,)).rowcount  # noqa: S608 - ours
                db.execute(f"DELETE FROM answer WHERE {some}", (chunk,))  # noqa: S608
                # A key is a hash of the whole question: who guesses the question could prove that it was asked.
                query = f"UPDATE attempt SET key = 'forgotten-' || id WHERE ended IS NOT NULL AND {some}"  # noqa: S608
                db.execute(query, (chunk,))
        if not self._file.write_back():
            raise self._busy(f"{gone} requests are forgotten, but their bytes are still in the log beside the ledger")
        return gone

    def compact(self) -> None:
        """Writes the file again, without what was deleted from it. Raises LedgerBusy where another process reads it."""
        if not self._file.write_back(compact=True):
            raise self._busy("the ledger cannot be written again while another process reads it")

    def _busy(self, what: str) -> LedgerBusy:
        return LedgerBusy(what, where=self.path, hint="end the other processes that use the ledger, and do it again")


def _chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        yield keys[start : start + _KEYS_AT_ONCE]
