"""Batches in the ledger: their calls are begun together, outlive the process that sent them, and end one by one."""

import asyncio
import time
from collections.abc import Callable, Sequence
from sqlite3 import Connection
from typing import Any, TypeGuard, TypeVar

from pipelines.errors import BudgetSpent, GongqingError, LedgerBusy, LedgerError, UnknownName
from pipelines.llm.ledger import sessions
from pipelines.llm.ledger.file import LedgerFile
from pipelines.llm.ledger.packing import packed, unpacked
from pipelines.llm.ledger.reading import utc
from pipelines.llm.ledger.records import Attempt, Batch, Call, Elsewhere, Planned, Recorded
from pipelines.llm.ledger.writer import MOST_AT_ONCE, Begin, Do, Writer

T = TypeVar("T")

_COLUMNS = "batch.id, batch.alias, batch.host, batch.file, batch.vendor, batch.created, batch.output, batch.errors"


class Batches:
    """The batches of a ledger. A batch belongs to the session that sent it, and to whoever takes it over once that is
    dead.
    """

    def __init__(self, file: LedgerFile, writer: Writer) -> None:
        self._file, self._writer = file, writer

    async def plan(
        self, alias: str, host: str, calls: Sequence[Call], reserves: Sequence[int], budget: int | None
    ) -> Planned:
        """Begins the calls as one batch, in one transaction, as far as the budget goes. Nothing is sent yet."""
        jobs = [
            Begin(call, packed(call.payload), reserve, budget) for call, reserve in zip(calls, reserves, strict=True)
        ]

        def work(db: Connection) -> Planned:
            now = time.time()
            number = db.execute(
                "INSERT INTO batch (session, alias, host, created, status) VALUES (?, ?, ?, ?, 'planned') RETURNING id",
                (self._writer.session_id, alias, host, now),
            ).fetchone()[0]
            results: list[Attempt | Recorded | Elsewhere | GongqingError] = []
            for start in range(0, len(jobs), MOST_AT_ONCE):
                some = jobs[start : start + MOST_AT_ONCE]
                for job in some:
                    job.batch = number
                results += self._writer.begin(db, some, now)
                if any(map(_refused, results)):
                    break  # once one does not fit, no other group is tried
            attempts = tuple(result for result in results if isinstance(result, Attempt))
            if not attempts:
                db.execute("DELETE FROM batch WHERE id = ?", (number,))
            return Planned(
                batch=Batch(number, alias, host, None, None, utc(now)) if attempts else None,
                attempts=attempts,
                recorded=tuple(result for result in results if isinstance(result, Recorded)),
                elsewhere=tuple(result.key for result in results if isinstance(result, Elsewhere)),
                dear={
                    job.call.key: result
                    for job, result in zip(jobs, results, strict=False)  # of the groups that were tried
                    if isinstance(result, BudgetSpent) and result.too_dear
                },
                refused=next(filter(_refused, results), None),
            )

        return await self._do(work)

    async def taken_over(self, alias: str, host: str) -> list[Batch]:
        """The batches of a profile that nobody else alive waits for: they are this session's now."""

        def work(db: Connection) -> list[Batch]:
            rows = db.execute(
                f"SELECT {_COLUMNS}, session.id, session.name FROM batch JOIN session ON session.id = batch.session"  # noqa: S608
                " WHERE batch.ended IS NULL AND batch.alias = ? AND batch.host = ? ORDER BY batch.id",
                (alias, host),
            ).fetchall()
            ours = []
            for *columns, owner, name in rows:
                if self._of_another(owner, name):
                    continue
                db.execute("UPDATE batch SET session = ? WHERE id = ?", (self._writer.session_id, columns[0]))
                ours.append(_batch(columns))
            return ours

        return await self._do(work)

    async def open(self) -> list[Batch]:
        """All that have not ended, whoever's they are."""
        return await self._where("ended IS NULL")

    async def sent(self, batch: Batch, *, file: str | None = None, vendor: str | None = None) -> Batch:
        """Keeps what the host calls the batch's file, or the batch itself."""

        def work(db: Connection) -> Batch:
            db.execute(
                "UPDATE batch SET file = coalesce(?, file), vendor = coalesce(?, vendor), status = 'sent' WHERE id = ?",
                (file, vendor, batch.id),
            )
            return _batch(
                db.execute(f"SELECT {_COLUMNS} FROM batch WHERE id = ?", (batch.id,)).fetchone()  # noqa: S608
            )

        return await self._do(work)

    async def attempts(self, batch: Batch) -> dict[str, Attempt]:
        """Those of its calls that have not ended, by key. Their payloads stay in the ledger."""

        def work(db: Connection) -> dict[str, Attempt]:
            rows = db.execute(
                "SELECT id, held, budget, key, stage, alias, model, sample, currency FROM attempt"
                " WHERE batch = ? AND ended IS NULL",
                (batch.id,),
            )
            return {
                key: Attempt(number, Call(key, stage, alias, model, b"", sample, currency), held, budget)
                for number, held, budget, key, stage, alias, model, sample, currency in rows
            }

        return await self._do(work)

    async def payload(self, attempt: Attempt) -> bytes | None:
        """The payload of one of them; None where it was forgotten."""

        def work(db: Connection) -> bytes | None:
            found = db.execute("SELECT payload FROM request WHERE key = ?", (attempt.call.key,)).fetchone()
            return None if found is None else unpacked(found[0])

        return await self._do(work)

    async def give_up(self, batch_id: int) -> int:
        """Ends a batch that nobody will collect: its host or its profile is no more. How many calls it still had.

        They count as lost: nobody knows whether they were billed, so what was set aside for them stays so, and they may
        be asked again. What the host has kept of it stays `uncleared`.

        Raises UnknownName for one that is not open, LedgerBusy while somebody alive waits for it.
        """

        def work(db: Connection) -> int:
            rows = db.execute(
                "SELECT batch.id, session.id, session.name FROM batch JOIN session ON session.id = batch.session"
                " WHERE batch.ended IS NULL"
            ).fetchall()
            owners = {number: (owner, name) for number, owner, name in rows}
            if batch_id not in owners:
                raise UnknownName("open batch", str(batch_id), map(str, owners))
            owner, name = owners[batch_id]
            if self._of_another(owner, name):
                raise LedgerBusy(
                    f"a process that is alive waits for batch {batch_id}",
                    where=self._file.path,
                    hint="end it first, or let it collect the batch",
                )
            now = time.time()
            left = db.execute(
                "UPDATE attempt SET status = 'lost', ended = ? WHERE batch = ? AND ended IS NULL", (now, batch_id)
            ).rowcount
            db.execute("UPDATE batch SET status = 'given_up', ended = ? WHERE id = ?", (now, batch_id))
            return left

        return await self._do(work)

    async def ended(self, batch: Batch, status: str) -> None:
        """Nothing more is expected of it; keeps the names of the files of its results.

        Raises LedgerError while a call of it has not ended.
        """

        def work(db: Connection) -> None:
            (left,) = db.execute(
                "SELECT count(*) FROM attempt WHERE batch = ? AND ended IS NULL", (batch.id,)
            ).fetchone()
            if left:
                raise LedgerError(f"{left} calls of batch {batch.id} have not ended", hint="end them first")
            db.execute(
                "UPDATE batch SET ended = ?, status = ?, output = ?, errors = ? WHERE id = ?",
                (time.time(), status, batch.output, batch.errors, batch.id),
            )

        await self._do(work)

    async def uncleared(self) -> list[Batch]:
        """Those that have ended, and whose files may still be with their host."""
        return await self._where("ended IS NOT NULL AND cleared IS NULL")

    async def cleared(self, batch: Batch) -> None:
        """The host has its files no more."""
        await self._do(lambda db: db.execute("UPDATE batch SET cleared = ? WHERE id = ?", (time.time(), batch.id)))

    def _of_another(self, owner: int, name: str) -> bool:
        """Whether it belongs to a session that is alive, and not this one."""
        return owner != self._writer.session_id and sessions.alive(sessions.beside(self._file.path), name)

    async def _where(self, condition: str) -> list[Batch]:
        asked = f"SELECT {_COLUMNS} FROM batch WHERE {condition} ORDER BY id"  # noqa: S608 - ours
        return await self._do(lambda db: [_batch(row) for row in db.execute(asked)])

    async def _do(self, work: Callable[[Connection], T]) -> T:
        job = Do(work, alive=True)
        self._writer.submit(job)
        result: T = await asyncio.shield(asyncio.wrap_future(job.future))
        return result


def _refused(result: object) -> TypeGuard[GongqingError]:
    """Whether it is a reason to try no further; what is too dear for any budget of this size is none."""
    return isinstance(result, GongqingError) and not (isinstance(result, BudgetSpent) and result.too_dear)


def _batch(row: Sequence[Any]) -> Batch:
    number, alias, host, file, vendor, created, output, errors = row
    return Batch(number, alias, host, file, vendor, utc(created), output, errors)
