"""The one thread that writes to the ledger: all that waits goes into one transaction, thus into one flush of the disk.

A flush takes milliseconds, and with 64 requests in flight as many begin and end meanwhile. A group costs a handful of
statements however large it is, because the thread has to win the interpreter's lock back after each of them.
"""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from sqlite3 import Connection
from typing import Any, TypeVar

from pipelines.errors import BudgetSpent, GongqingError, LedgerBusy, LedgerError, RequestError
from pipelines.llm.ledger import sessions
from pipelines.llm.ledger.file import LedgerFile
from pipelines.llm.ledger.reading import recorded, utc
from pipelines.llm.ledger.records import Answer, Attempt, Call, Elsewhere, Recorded
from pipelines.llm.money import amount

T = TypeVar("T")

# Rows travel as one JSON array of arrays, so that one statement does for all.
_OF_A_BEGIN = ("id", "key", "sample", "stage", "alias", "model", "batch", "budget", "held", "currency")
_OF_AN_END = ("status", "held", "cost", "served", "prompt", "cached", "completion")
_LEAVE = (
    f"INSERT INTO attempt (session, started, status, {', '.join(_OF_A_BEGIN)}) SELECT ?, ?, 'open', "  # noqa: S608 - ours
    + ", ".join(f"json_extract(row.value, '$[{place}]')" for place in range(len(_OF_A_BEGIN)))
    + " FROM json_each(?) AS row"
)
_ENDED = (
    "UPDATE attempt SET ended = ?, "  # noqa: S608 - ours
    + ", ".join(f"{column} = json_extract(row.value, '$[{place}]')" for place, column in enumerate(_OF_AN_END, 1))
    + " FROM json_each(?) AS row WHERE attempt.id = json_extract(row.value, '$[0]') AND attempt.ended IS NULL"
)

MOST_AT_ONCE = 500  # of one kind in a transaction: those who wait meanwhile wait longer


@dataclass(slots=True)
class Begin:
    """A request that wants to leave. `payload` is compressed."""

    call: Call
    payload: bytes
    reserve: int
    budget: int | None
    batch: int | None = None
    future: "Future[Attempt | Recorded | Elsewhere]" = field(default_factory=Future)


@dataclass(slots=True)
class End:
    """An attempt that is over: with an answer, whose body is compressed, or without."""

    attempt: Attempt
    status: str
    held: int
    cost: int = 0
    answer: Answer | None = None
    body: bytes = b""
    future: "Future[float]" = field(default_factory=Future)  # when, in seconds since 1970


@dataclass(slots=True)
class Do:
    """Anything else, in a transaction of its own. `alive`: whether others must see that this session lives."""

    work: Callable[[Connection], Any]
    alive: bool = False
    future: "Future[Any]" = field(default_factory=Future)


Job = Begin | End | Do


class Writer:
    """Takes jobs from any thread and any event loop; a job's future is done once it is on the disk."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file
        self._folder = sessions.beside(file.path)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        self._session: sessions.Session | None = None
        self.session_id = 0

    def submit(self, job: Job) -> None:
        """Raises LedgerError where it is closed, or was opened before this process was forked."""
        if os.getpid() != self._process:
            raise LedgerError(
                "the ledger was opened in another process", where=self._file.path, hint="open it after the fork"
            )
        with self._starting:
            if self._closed:
                raise LedgerError("the ledger is closed", where=self._file.path, hint="open it again")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)
                self._thread.start()
            self._jobs.put(job)

    def do(self, work: Callable[[Connection], T], *, alive: bool = False) -> T:
        """Runs `work` in a transaction of its own and waits for it."""
        job = Do(work, alive)
        self.submit(job)
        result: T = job.future.result()
        return result

    def close(self) -> None:
        """Writes what waits. What this session has under way is lost from here on."""
        with self._starting:
            self._closed = True
            self._jobs.put(None)  # the last one
        if self._thread is not None:
            self._thread.join()
        if self._session is not None:
            with self._file.transaction() as db:
                _end_session(db, self.session_id)
            self._session.end()
            self._session = None

    def _run(self) -> None:
        open_ = True
        while open_:
            waiting = [self._jobs.get()]
            while not self._jobs.empty() and len(waiting) < MOST_AT_ONCE:
                waiting.append(self._jobs.get())
            open_ = None not in waiting
            jobs = [job for job in waiting if job is not None and job.future.set_running_or_notify_cancel()]
            for job in jobs:
                if isinstance(job, Do):
                    self._settle([job], self._apart)
            self._settle([job for job in jobs if isinstance(job, Begin | End)], self._together)

    def _settle(self, jobs: Sequence[Any], write: Callable[[Sequence[Any]], list[Any]]) -> None:
        """Writes jobs and says so to who waits. Where a group fails, each is tried alone: what still fits is kept."""
        if not jobs:
            return
        try:
            results = write(jobs)
        except Exception as error:  # noqa: BLE001 - handed to those who wait, whatever it is
            if len(jobs) > 1 and not isinstance(error, LedgerBusy):
                for job in jobs:
                    self._settle([job], write)
                return
            results = [error] * len(jobs)
        for job, result in zip(jobs, results, strict=True):
            if isinstance(result, Exception):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)

    def _apart(self, jobs: Sequence[Do]) -> list[Any]:
        if any(job.alive for job in jobs):
            self._start_session()
        with self._file.transaction() as db:
            return [job.work(db) for job in jobs]

    def _together(self, jobs: Sequence[Begin | End]) -> list[Any]:
        begins = [job for job in jobs if isinstance(job, Begin)]
        if begins:
            self._start_session()
        with self._file.transaction() as db:
            now = time.time()
            _end(db, [job for job in jobs if isinstance(job, End)], now)
            begun = iter(self.begin(db, begins, now))
            return [next(begun) if isinstance(job, Begin) else now for job in jobs]

    def _start_session(self) -> None:
        """From here on others see that this process lives. What the dead had under way is lost."""
        if self._session is not None:
            return
        with contextlib.ExitStack() as undo:
            with self._file.transaction() as db:
                self._bury(db)
                sessions.tidy(self._folder)
                session = sessions.Session(self._folder)
                undo.callback(session.end)
                number = db.execute(
                    "INSERT INTO session (name, pid, started) VALUES (?, ?, ?) RETURNING id",
                    (session.name, os.getpid(), time.time()),
                ).fetchone()[0]
            undo.pop_all()
        self._session, self.session_id = session, number

    def _bury(self, db: Connection) -> None:
        """Ends the sessions that are dead."""
        for number, name in db.execute("SELECT id, name FROM session WHERE ended IS NULL").fetchall():
            if number != self.session_id and not sessions.alive(self._folder, name):
                _end_session(db, number)

    def begin(
        self, db: Connection, jobs: Sequence[Begin], now: float
    ) -> list[Attempt | Recorded | Elsewhere | GongqingError]:
        """What becomes of each; for work in a transaction of this writer."""
        if not jobs:
            return []
        keys = json.dumps([job.call.key for job in jobs])
        if self._of_the_dead(db, keys):
            self._bury(db)
        answered = recorded(db, keys)
        under_way = self._under_way(db, keys)
        budgets = _Budgets(db, {job.budget for job in jobs if job.budget is not None})
        number = db.execute("SELECT coalesce(max(id), 0) FROM attempt").fetchone()[0]
        results: list[Attempt | Recorded | Elsewhere | GongqingError] = []
        leaving: list[Begin] = []
        for job in jobs:
            key = job.call.key
            if key in answered:
                results.append(answered[key])
            elif key in under_way:
                results.append(under_way[key])
            elif (refused := budgets.refused(job)) is not None:
                results.append(refused)
            else:
                number += 1
                leaving.append(job)
                under_way[key] = Elsewhere(key, utc(now))
                results.append(Attempt(number, job.call, job.reserve, job.budget))
        _insert(db, leaving, number - len(leaving), self.session_id, now)
        budgets.write()
        return results

    def _of_the_dead(self, db: Connection, keys: str) -> bool:
        """Whether a request of a session that is dead is among those under way."""
        names = db.execute(
            "SELECT DISTINCT session.name FROM json_each(?) AS wanted CROSS JOIN attempt"
            " ON attempt.key = wanted.value AND attempt.ended IS NULL AND attempt.batch IS NULL"
            " JOIN session ON session.id = attempt.session WHERE session.id != ?",
            (keys, self.session_id),
        ).fetchall()
        return any(not sessions.alive(self._folder, name) for (name,) in names)

    def _under_way(self, db: Connection, keys: str) -> dict[str, Elsewhere | GongqingError]:
        found: dict[str, Elsewhere | GongqingError] = {}
        rows = db.execute(
            "SELECT attempt.key, attempt.started, batch.id, batch.alias, batch.host, session.name"
            " FROM json_each(?) AS wanted CROSS JOIN attempt ON attempt.key = wanted.value AND attempt.ended IS NULL"
            " LEFT JOIN batch ON batch.id = attempt.batch LEFT JOIN session ON session.id = batch.session",
            (keys,),
        ).fetchall()
        for key, started, batch, alias, host, owner in rows:
            found[key] = Elsewhere(key, utc(started))
            if batch is not None and not sessions.alive(self._folder, owner):
                found[key] = LedgerBusy(
                    f"a question has been asked in batch {batch} of {alias} at {host}, which nobody has collected yet",
                    where=self._file.path,
                    hint="ask with --batch: it collects the batch, and asks only what has no answer then; where that"
                    f" profile or host is no more: gongqing ledger give-up-batch {batch}",
                )
        return found


class _Budgets:
    """The budgets of a group, as they stand after what was taken from them so far."""

    def __init__(self, db: Connection, ids: set[int]) -> None:
        self._db = db
        self._rows: dict[int, list[Any]] = {
            row[0]: list(row[1:])
            for row in db.execute(
                "SELECT id, cap, currency, spent, held, closed FROM budget"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (json.dumps(sorted(ids)),),
            )
        }
        self._taken: dict[int, int] = {}

    def refused(self, job: Begin) -> GongqingError | None:
        """Why the job's reserve cannot be set aside; else it is."""
        if job.budget is None:
            return None
        if job.budget not in self._rows:
            return RequestError(f"there is no budget {job.budget}", hint="open one")
        cap, currency, spent, held, closed = self._rows[job.budget]
        if closed is not None:
            return RequestError(f"budget {job.budget} is closed", hint="open another")
        if job.call.currency != currency:
            return RequestError(
                f"{job.call.alias} is paid in {job.call.currency}, and the budget is in {currency}",
                hint=f"give its price in {currency}, or a budget in {job.call.currency}",
            )
        if spent + held + job.reserve > cap:
            return BudgetSpent(
                spent=amount(spent),
                held=amount(held),
                wanted=amount(job.reserve),
                cap=amount(cap),
                currency=currency,
            )
        self._rows[job.budget][3] += job.reserve
        self._taken[job.budget] = self._taken.get(job.budget, 0) + job.reserve
        return None

    def write(self) -> None:
        for budget, taken in self._taken.items():
            self._db.execute("UPDATE budget SET held = held + ? WHERE id = ?", (taken, budget))


def _insert(db: Connection, jobs: Sequence[Begin], last: int, session: int, now: float) -> None:
    if not jobs:
        return
    rows = [
        [
            *(last + place, job.call.key, job.call.sample, job.call.stage, job.call.alias, job.call.model, job.batch),
            *(job.budget, job.reserve, job.call.currency),
        ]
        for place, job in enumerate(jobs, 1)
    ]
    db.execute(_LEAVE, (session, now, json.dumps(rows)))
    db.execute(
        f"INSERT OR IGNORE INTO request VALUES {_rows(2, len(jobs))}",  # noqa: S608 - question marks
        [value for job in jobs for value in (job.call.key, job.payload)],
    )


def _end(db: Connection, jobs: Sequence[End], now: float) -> None:
    """Ends attempts; keeps answers; settles budgets."""
    if not jobs:
        return
    rows = []
    settled: dict[int, tuple[int, int]] = {}
    for job in jobs:
        usage = job.answer.usage if job.answer else None
        counts = (usage.prompt, usage.cached, usage.completion) if usage else (None, None, None)
        served = job.answer.served if job.answer else None
        rows.append([job.attempt.id, job.status, job.held, job.cost, served, *counts])
        if job.attempt.budget is not None:
            spent, held = settled.get(job.attempt.budget, (0, 0))
            settled[job.attempt.budget] = (spent + job.cost, held + job.held - job.attempt.reserve)
    changed = db.execute(_ENDED, (now, json.dumps(rows))).rowcount
    if changed != len(jobs):
        raise LedgerError(
            f"{len(jobs) - changed} of {len(jobs)} calls have ended before",
            hint="end every attempt once; a session that was closed has ended its own",
        )
    for budget, (spent, held) in settled.items():
        db.execute("UPDATE budget SET spent = spent + ?, held = held + ? WHERE id = ?", (spent, held, budget))
    answers = [(job.attempt, job.answer, job.body) for job in jobs if job.answer is not None]
    if answers:
        values: list[Any] = []
        for attempt, answer, body in answers:
            values += (attempt.call.key, attempt.id, answer.finish_reason, body)
        db.execute(f"INSERT OR REPLACE INTO answer VALUES {_rows(4, len(answers))}", values)  # noqa: S608


def _end_session(db: Connection, session: int) -> None:
    """What it had under way is lost, save what is in a batch: that can be collected."""
    now = time.time()
    db.execute(
        "UPDATE attempt SET status = 'lost', ended = ? WHERE session = ? AND ended IS NULL AND batch IS NULL",
        (now, session),
    )
    db.execute("UPDATE session SET ended = ? WHERE id = ?", (now, session))


def _rows(columns: int, count: int) -> str:
    row = f"({', '.join('?' * columns)})"
    return ", ".join([row] * count)
