"""Batches in the ledger: their calls are begun together, outlive the process that sent them, and end one by one."""

import asyncio
import time
from collections.abc import Callable, Sequence
from sqlite3 import Connection
from typing import Any, TypeVar

from pipelines.errors import GongqingError, LedgerError
from pipelines.llm import ledger_sessions
from pipelines.llm.ledger_file import LedgerFile
from pipelines.llm.ledger_reading import packed, utc
from pipelines.llm.ledger_records import Attempt, Batch, Call, Elsewhere, Planned, Recorded
from pipelines.llm.ledger_writer import MOST_AT_ONCE, Begin, Do, Writer, sessions

T = TypeVar("T")

_COLUMNS = "batch.id, batch.alias, batch.host, batch.file, batch.vendor, batch.created"


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
                if any(isinstance(result, GongqingError) for result in results):
                    break  # the first that does not fit is the last that is tried
            attempts = tuple(result for result in results if isinstance(result, Attempt))
            if not attempts:
                db.execute("DELETE FROM batch WHERE id = ?", (number,))
            return Planned(
                batch=Batch(number, alias, host, None, None, utc(now)) if attempts else None,
                attempts=attempts,
                recorded=tuple(result for result in results if isinstance(result, Recorded)),
                elsewhere=tuple(result.key for result in results if isinstance(result, Elsewhere)),
                refused=next((result for result in results if isinstance(result, GongqingError)), None),
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
                if owner != self._writer.session_id and ledger_sessions.alive(sessions(self._file.path), name):
                    continue
                db.execute("UPDATE batch SET session = ? WHERE id = ?", (self._writer.session_id, columns[0]))
                ours.append(_batch(columns))
            return ours

        return await self._do(work)

    async def open(self) -> list[Batch]:
        """All that have not ended, whoever's they are."""
        return await self._do(
            lambda db: [
                _batch(row)
                for row in db.execute(f"SELECT {_COLUMNS} FROM batch WHERE ended IS NULL ORDER BY id")  # noqa: S608
            ]
        )

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

    async def ended(self, batch: Batch, status: str) -> None:
        """Nothing more is expected of it. Raises LedgerError while a call of it has not ended."""

        def work(db: Connection) -> None:
            left = db.execute("SELECT count(*) FROM attempt WHERE batch = ? AND ended IS NULL", (batch.id,)).fetchone()[
                0
            ]
            if left:
                raise LedgerError(f"{left} calls of batch {batch.id} have not ended", remedy="end them first")
            db.execute("UPDATE batch SET ended = ?, status = ? WHERE id = ?", (time.time(), status, batch.id))

        await self._do(work)

    async def _do(self, work: Callable[[Connection], T]) -> T:
        job = Do(work, alive=True)
        self._writer.submit(job)
        result: T = await asyncio.shield(asyncio.wrap_future(job.future))
        return result


def _batch(row: Sequence[Any]) -> Batch:
    number, alias, host, file, vendor, created = row
    return Batch(number, alias, host, file, vendor, utc(created))
