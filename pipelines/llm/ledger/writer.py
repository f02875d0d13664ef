"""The one thread that begins and ends attempts: all that waits goes into one transaction, thus into one flush.

A flush takes milliseconds, and with 64 requests in flight as many begin and end meanwhile. A group costs a handful of
statements however large it is, because the thread has to win the interpreter's lock back after each of them.
"""

import json
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from queue import SimpleQueue
from sqlite3 import Connection
from typing import Any

from pipelines.errors import BudgetSpent, GongqingError, LedgerBusy, LedgerError, RequestError
from pipelines.llm.ledger.file import LedgerFile, packed, unpacked
from pipelines.llm.ledger.records import Answer, Attempt, Budget, Call, InProgress, Recorded
from pipelines.llm.money import Usage, amount

Begun = Attempt | Recorded | InProgress

MOST_AT_ONCE = 500  # in a transaction: the next group waits as long
_BEGUN = "id, key, sample, stage, alias, model, currency, repair, batch, budget, held, session, started, status"
_ENDED = ("status", "held", "cost", "served", "prompt", "cached", "completion", "ended")
# In the order of `to_recorded`.
ANSWER_COLUMNS = (
    "answer.key, answer.body, attempt.served, answer.finish_reason, attempt.prompt, attempt.cached, attempt.completion,"
    " attempt.cost, attempt.alias, attempt.ended"
)
_RECORDED = (
    f"SELECT {ANSWER_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN answer ON answer.key = wanted.value"  # noqa: S608
    " CROSS JOIN attempt ON attempt.id = answer.attempt"
)


@dataclass(slots=True)
class Begin:
    """A request that wants to leave."""

    call: Call
    reserve: int
    budget: int | None
    batch: int | None = None
    payload: bytes = field(init=False)
    future: "Future[Begun]" = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.payload = packed(self.call.payload)  # in the thread of the caller


@dataclass(slots=True)
class End:
    """An attempt that is over: with an answer, whose body is compressed, or without."""

    attempt: Attempt
    status: str
    held: int = 0
    answer: Answer | None = None
    body: bytes = b""
    future: "Future[float]" = field(default_factory=Future)  # when, in seconds since 1970


class Writer:
    """Takes jobs from any thread and any event loop; a job's future is done once it is on the disk."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file
        self._jobs: SimpleQueue[Begin | End] = SimpleQueue()
        self._thread = ThreadPoolExecutor(1, "ledger")

    def submit(self, job: Begin | End) -> None:
        """Raises LedgerError where it is closed."""
        self._jobs.put(job)
        try:
            self._thread.submit(self._write_waiting)
        except RuntimeError:
            raise self._file.closed_error() from None

    def close(self) -> None:
        """Writes what waits."""
        self._thread.shutdown()

    def _write_waiting(self) -> None:
        waiting: list[Begin | End] = []
        while not self._jobs.empty() and len(waiting) < MOST_AT_ONCE:
            waiting.append(self._jobs.get())
        self._write([job for job in waiting if job.future.set_running_or_notify_cancel()])

    def _write(self, jobs: Sequence[Begin | End]) -> None:
        """Writes jobs and sets their futures. Where a group fails, each is tried alone: what still fits is kept."""
        if not jobs:
            return
        try:
            with self._file.transaction() as db:
                now = time.time()
                _end(db, [job for job in jobs if isinstance(job, End)], now)
                begun = iter(begin(self._file, db, [job for job in jobs if isinstance(job, Begin)], now))
                results: list[Any] = [next(begun) if isinstance(job, Begin) else now for job in jobs]
        except Exception as error:  # noqa: BLE001 - handed to those who wait, whatever it is
            if len(jobs) > 1 and not isinstance(error, LedgerBusy):
                for job in jobs:
                    self._write([job])
                return
            results = [error] * len(jobs)
        for job, result in zip(jobs, results, strict=True):
            future: Future[Any] = job.future
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)


def begin(file: LedgerFile, db: Connection, jobs: Sequence[Begin], now: float) -> list[Begun | GongqingError]:
    """What becomes of each; within a transaction of this file."""
    if not jobs:
        return []
    keys = [job.call.key for job in jobs]
    known: dict[str, Begun | GongqingError] = {**_in_progress(file, db, keys), **recorded(db, keys)}
    budgets = open_budgets(db)
    number = db.execute("SELECT coalesce(max(id), 0) FROM attempt").fetchone()[0]
    results: list[Begun | GongqingError] = []
    rows, requests = [], []
    for job in jobs:
        call = job.call
        result = known.get(call.key) or _refused(job, budgets)
        if result is None:
            number += 1
            row = (number, call.key, call.sample, call.stage, call.alias, call.model, call.currency, call.repair)
            rows.append((*row, job.batch, job.budget, job.reserve, file.session_id, now, "open"))
            requests.append((call.key, job.payload))
            known[call.key] = InProgress()
            result = Attempt(number, call, job.reserve, job.budget)
        results.append(result)
    if rows:
        db.execute(f"INSERT INTO attempt ({_BEGUN}) VALUES {_marks(rows)}", _flat(rows))  # noqa: S608 - ours
        db.execute(f"INSERT OR IGNORE INTO request VALUES {_marks(requests)}", _flat(requests))  # noqa: S608
    for budget in budgets.values():
        db.execute("UPDATE budget SET held = ? WHERE id = ?", (budget.held, budget.id))
    return results


def _in_progress(file: LedgerFile, db: Connection, keys: Sequence[str]) -> dict[str, InProgress | LedgerBusy]:
    """Those of the keys that are in flight, or in a batch. Ends the sessions of the dead."""
    rows = db.execute(
        "SELECT attempt.key, session.name, batch.id, batch.alias, batch.host"
        " FROM json_each(?) AS wanted CROSS JOIN attempt ON attempt.key = wanted.value AND attempt.ended IS NULL"
        " LEFT JOIN batch ON batch.id = attempt.batch"
        " JOIN session ON session.id = coalesce(batch.session, attempt.session)",
        (json.dumps(keys),),
    ).fetchall()
    alive = {name: file.is_alive(name) for _, name, *_ in rows}
    if not all(alive.values()):
        file.end_dead_sessions(db)
    busy: dict[str, InProgress | LedgerBusy] = {}
    for key, name, batch, alias, host in rows:
        if alive[name]:
            busy[key] = InProgress()
        elif batch is not None:
            busy[key] = LedgerBusy(
                f"a question has been asked in batch {batch} of {alias} at {host}, which nobody has collected yet",
                where=file.path,
                hint="ask with --batch: it collects the batch, and asks only what has no answer then; where that"
                f" profile or host is no more: gongqing ledger give-up-batch {batch}",
            )
    return busy


def recorded(db: Connection, keys: Sequence[str]) -> dict[str, Recorded]:
    """The answers to some keys."""
    return {row[0]: to_recorded(row) for row in db.execute(_RECORDED, (json.dumps(keys),))}


def to_recorded(row: Sequence[Any]) -> Recorded:
    """The answer in a row of the columns that `recorded` selects."""
    key, body, served, finish_reason, prompt, cached, completion, cost, alias, ended = row
    usage = Usage(prompt, cached, completion)
    return Recorded(unpacked(body), served, finish_reason, usage, cost, key=key, alias=alias, at=utc(ended))


def utc(seconds: float) -> datetime:
    """Seconds since 1970 as a point in time."""
    return datetime.fromtimestamp(seconds, UTC)


def open_budgets(db: Connection) -> dict[int, Budget]:
    """The budgets that are open, by id, oldest first."""
    rows = db.execute(
        "SELECT id, of, cap, currency, spent, held, opened FROM budget WHERE closed IS NULL ORDER BY id"
    ).fetchall()
    return {row[0]: Budget(*(*row[:-1], utc(row[-1]))) for row in rows}


def budget_spent(budget: Budget, wanted: int, waiting: int | None = None) -> BudgetSpent:
    """Why a call that may cost so many nano-units is not sent."""
    amounts = {"spent": budget.spent, "held": budget.held, "wanted": wanted, "cap": budget.cap}
    exact = {name: amount(nano) for name, nano in amounts.items()}
    return BudgetSpent(**exact, currency=budget.currency, waiting=waiting)


def _refused(job: Begin, budgets: dict[int, Budget]) -> GongqingError | None:
    """Why the job's reserve cannot be set aside; None: it is, in `budgets`."""
    if job.budget is None:
        return None
    budget = budgets.get(job.budget)
    if budget is None:
        return RequestError(f"there is no open budget {job.budget}", hint="open one")
    if job.call.currency != budget.currency:
        return RequestError(
            f"{job.call.alias} is paid in {job.call.currency}, and the budget is in {budget.currency}",
            hint=f"give its price in {budget.currency}, or a budget in {job.call.currency}",
        )
    if budget.spent + budget.held + job.reserve > budget.cap:
        return budget_spent(budget, job.reserve)
    budgets[job.budget] = replace(budget, held=budget.held + job.reserve)
    return None


def _end(db: Connection, jobs: Sequence[End], now: float) -> None:
    """Ends attempts, keeps answers, and moves what was held of a budget to what was spent of it."""
    if not jobs:
        return
    rows, answers = [], []
    changes: dict[int, tuple[int, int]] = {}
    for job in jobs:
        attempt, answer = job.attempt, job.answer
        cost = 0 if answer is None else answer.cost
        reported: Sequence[Any] = (None, None, None, None)
        if answer is not None:
            usage = answer.usage
            reported = (answer.served, usage.prompt, usage.cached, usage.completion)
            answers.append((attempt.call.key, attempt.id, answer.finish_reason, job.body))
        rows.append((attempt.id, job.status, job.held, cost, *reported, now))
        if attempt.budget is not None:
            spent, held = changes.get(attempt.budget, (0, 0))
            changes[attempt.budget] = (spent + cost, held + job.held - attempt.reserve)
    columns = ", ".join(f"{name} = row.column{place}" for place, name in enumerate(_ENDED, 2))
    ended = db.execute(
        f"UPDATE attempt SET {columns} FROM (VALUES {_marks(rows)}) AS row"  # noqa: S608 - ours
        " WHERE attempt.id = row.column1 AND attempt.ended IS NULL",
        _flat(rows),
    ).rowcount
    if ended != len(jobs):
        hint = "end every attempt once; a session that was closed has ended its own"
        raise LedgerError(f"{len(jobs) - ended} of {len(jobs)} calls have ended before", hint=hint)
    for budget, (spent, held) in changes.items():
        db.execute("UPDATE budget SET spent = spent + ?, held = held + ? WHERE id = ?", (spent, held, budget))
    if answers:
        db.execute(f"INSERT OR REPLACE INTO answer VALUES {_marks(answers)}", _flat(answers))  # noqa: S608


def _marks(rows: Sequence[Sequence[Any]]) -> str:
    return ", ".join([f"({', '.join('?' * len(rows[0]))})"] * len(rows))


def _flat(rows: Sequence[Sequence[Any]]) -> list[Any]:
    return [value for row in rows for value in row]
