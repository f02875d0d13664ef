"""Batches in the ledger: their calls are begun together, outlive the process that sent them, and end one by one."""

import json
import time
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import TypeGuard

from pipelines.errors import BudgetSpent, GongqingError, LedgerBusy, LedgerError, UnknownName
from pipelines.llm.ledger.file import LedgerFile, unpacked
from pipelines.llm.ledger.records import Attempt, Batch, Call, Planned, Recorded
from pipelines.llm.ledger.writer import MOST_AT_ONCE, Begin, Begun, begin, utc

_COLUMNS = "id, alias, host, file, vendor, created, output, errors"


class Batches:
    """The batches of a ledger. Each belongs to the session that sent it or, once that is dead, took it over."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def plan(
        self, alias: str, host: str, calls: Sequence[Call], reserves: Sequence[int], budget: int | None
    ) -> Planned:
        """Begins the calls as one batch, in one transaction, as far as the budget goes. Nothing is sent yet."""
        with self._file.transaction() as db:
            now = time.time()
            (number,) = db.execute(
                "INSERT INTO batch (session, alias, host, created, status) VALUES (?, ?, ?, ?, 'planned') RETURNING id",
                (self._file.session_id, alias, host, now),
            ).fetchone()
            jobs = [Begin(call, reserve, budget, number) for call, reserve in zip(calls, reserves, strict=True)]
            results: list[Begun | GongqingError] = []
            for start in range(0, len(jobs), MOST_AT_ONCE):
                results += begin(self._file, db, jobs[start : start + MOST_AT_ONCE], now)
                if any(map(_is_refusal, results)):
                    break  # once one does not fit, no other group is tried
            attempts = tuple(result for result in results if isinstance(result, Attempt))
            if not attempts:
                db.execute("DELETE FROM batch WHERE id = ?", (number,))
        return Planned(
            batch=Batch(number, alias, host, None, None, utc(now)) if attempts else None,
            attempts=attempts,
            recorded=any(isinstance(result, Recorded) for result in results),
            too_expensive={
                job.call.key: result
                for job, result in zip(jobs, results, strict=False)  # of the groups that were tried
                if isinstance(result, BudgetSpent) and result.too_dear
            },
            refused=next(filter(_is_refusal, results), None),
        )

    def take_over(self, alias: str, host: str) -> list[Batch]:
        """The open batches of a profile that no other living session waits for: they are this session's now."""
        with self._file.transaction() as db:
            taken = self._taken(db)
            batches = [
                batch
                for batch in _batches(db, "ended IS NULL")
                if (batch.alias, batch.host) == (alias, host) and not taken[batch.id]
            ]
            for batch in batches:
                db.execute("UPDATE batch SET session = ? WHERE id = ?", (self._file.session_id, batch.id))
        return batches

    def open(self) -> list[Batch]:
        """All that have not ended."""
        return self._where("ended IS NULL")

    def sent(self, batch: Batch, *, file: str | None = None, vendor: str | None = None) -> Batch:
        """Keeps what the host calls the batch's file, or the batch itself."""
        with self._file.transaction() as db:
            db.execute(
                "UPDATE batch SET file = coalesce(?, file), vendor = coalesce(?, vendor), status = 'sent' WHERE id = ?",
                (file, vendor, batch.id),
            )
            return _batches(db, f"id = {batch.id}")[0]

    def attempts(self, batch: Batch) -> dict[str, Attempt]:
        """Those of its calls that have not ended, by key. Their payloads stay in the ledger."""
        with self._file.transaction() as db:
            rows = db.execute(
                "SELECT id, held, budget, key, stage, alias, model, sample, currency FROM attempt"
                " WHERE batch = ? AND ended IS NULL",
                (batch.id,),
            )
            return {
                key: Attempt(number, Call(key, stage, alias, model, b"", sample, currency), held, budget)
                for number, held, budget, key, stage, alias, model, sample, currency in rows
            }

    def payloads(self, attempts: Iterable[Attempt]) -> dict[str, bytes]:
        """The payloads of some of them, by key, without those that were forgotten."""
        keys = json.dumps([attempt.call.key for attempt in attempts])
        with self._file.transaction() as db:
            query = "SELECT key, payload FROM request WHERE key IN (SELECT value FROM json_each(?))"
            return {key: unpacked(payload) for key, payload in db.execute(query, (keys,))}

    def give_up(self, batch_id: int) -> int:
        """Ends a batch that nobody will collect: its host or its profile is no more. How many calls it still had.

        They count as lost: what was set aside for them stays so, and they may be asked again. What the host has kept of
        it stays `uncleared`. Raises UnknownName for one that is not open, LedgerBusy while a session waits for it.
        """
        with self._file.transaction() as db:
            taken = self._taken(db)
            if batch_id not in taken:
                raise UnknownName("open batch", str(batch_id), map(str, taken))
            if taken[batch_id]:
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

    def end(self, batch: Batch, status: str) -> None:
        """Nothing more is expected of it. Raises LedgerError while a call of it has not ended."""
        with self._file.transaction() as db:
            query = "SELECT count(*) FROM attempt WHERE batch = ? AND ended IS NULL"
            if left := db.execute(query, (batch.id,)).fetchone()[0]:
                raise LedgerError(f"{left} calls of batch {batch.id} have not ended", hint="end them first")
            db.execute(
                "UPDATE batch SET ended = ?, status = ?, output = ?, errors = ? WHERE id = ?",
                (time.time(), status, batch.output, batch.errors, batch.id),
            )

    def uncleared(self) -> list[Batch]:
        """Those that have ended, and whose files may still be with their host."""
        return self._where("ended IS NOT NULL AND cleared IS NULL")

    def cleared(self, batch: Batch) -> None:
        """The host has its files no more."""
        with self._file.transaction() as db:
            db.execute("UPDATE batch SET cleared = ? WHERE id = ?", (time.time(), batch.id))

    def _taken(self, db: Connection) -> dict[int, bool]:
        """The open batches by id: whether each belongs to a session that is alive, and not this one."""
        rows = db.execute(
            "SELECT batch.id, session.id, name FROM batch JOIN session ON session.id = batch.session"
            " WHERE batch.ended IS NULL ORDER BY batch.id"
        )
        mine, is_alive = self._file.session_id, self._file.is_alive
        return {number: owner != mine and is_alive(name) for number, owner, name in rows.fetchall()}

    def _where(self, condition: str) -> list[Batch]:
        with self._file.transaction() as db:
            return _batches(db, condition)


def _is_refusal(result: object) -> TypeGuard[GongqingError]:
    """Whether it is a reason to try no further: a call that is too expensive for the whole budget is not."""
    return isinstance(result, GongqingError) and not (isinstance(result, BudgetSpent) and result.too_dear)


def _batches(db: Connection, condition: str) -> list[Batch]:
    query = f"SELECT {_COLUMNS} FROM batch WHERE {condition} ORDER BY id"  # noqa: S608 - ours
    return [Batch(*(*row[:5], utc(row[5]), *row[6:])) for row in db.execute(query)]
