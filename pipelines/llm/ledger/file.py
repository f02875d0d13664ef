"""The ledger's file: SQLite, opened, written and refused in one place; and the sessions of those who use it.

WAL with synchronous=FULL: what was committed survives a power cut. All that writes or checkpoints holds the flock of
`<file>.lock`: SQLite alone lets the waiting sleep for up to 100 ms, and until 3.51.3 it could damage a file whose WAL
one process reset while another committed (sqlite.org/wal.html#walresetbug). Nothing here opens the database file beside
SQLite: closing such a descriptor would drop SQLite's POSIX locks.

A session holds the flock of a file of its name in `<file>-sessions/`. The kernel releases it however the process ends:
a file that is not locked is that of a dead session, whose requests are lost.
"""

import contextlib
import fcntl
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import zstandard

from pipelines.errors import DamagedLedger, LedgerBusy, LedgerError, LedgerFull

APPLICATION = 0x676F6E67  # "gong"
SCHEMA_VERSION = 3
PATIENCE = 60.0  # seconds that a writer waits for others
_POLL = 0.0005  # seconds

_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
-- A process that sends requests. It is alive as long as its lock file is locked.
CREATE TABLE session (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, pid INTEGER NOT NULL, started REAL NOT NULL, ended REAL
) STRICT;
-- spent and held: the sums of cost and held over the attempts, kept in the same transactions.
CREATE TABLE budget (
    id INTEGER PRIMARY KEY, of TEXT NOT NULL, cap INTEGER NOT NULL, currency TEXT NOT NULL,
    spent INTEGER NOT NULL DEFAULT 0, held INTEGER NOT NULL DEFAULT 0, opened REAL NOT NULL, closed REAL
) STRICT;
CREATE UNIQUE INDEX budget_open ON budget (of) WHERE closed IS NULL;
-- file, vendor, output, errors: what the host calls its file, itself, and the files of its results. cleared: when those
-- files were gone from the host, which should not keep what people wrote.
CREATE TABLE batch (
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, alias TEXT NOT NULL, host TEXT NOT NULL, file TEXT, vendor TEXT,
    created REAL NOT NULL, ended REAL, status TEXT NOT NULL, output TEXT, errors TEXT, cleared REAL
) STRICT;
CREATE INDEX batch_open ON batch (host) WHERE ended IS NULL;
-- Every time that a request left, or was about to. Money in nano-units. ended IS NULL: in flight, or its process died.
-- repair: 1 where the reply before it was wrong or cut short; NULL: of a version that did not note it.
CREATE TABLE attempt (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, sample INTEGER NOT NULL, stage TEXT NOT NULL, alias TEXT NOT NULL,
    model TEXT NOT NULL, session INTEGER NOT NULL, batch INTEGER, budget INTEGER, started REAL NOT NULL, ended REAL,
    status TEXT NOT NULL, held INTEGER NOT NULL, cost INTEGER NOT NULL DEFAULT 0, currency TEXT NOT NULL,
    served TEXT, prompt INTEGER, cached INTEGER, completion INTEGER, repair INTEGER
) STRICT;
CREATE INDEX attempt_open ON attempt (key) WHERE ended IS NULL;
CREATE INDEX attempt_lost ON attempt (session) WHERE status = 'lost';
CREATE INDEX attempt_batch ON attempt (batch) WHERE batch IS NOT NULL;
-- The texts, apart from the money: these can be forgotten.
CREATE TABLE request (key TEXT PRIMARY KEY, payload BLOB NOT NULL) STRICT;
CREATE TABLE answer (
    key TEXT PRIMARY KEY, attempt INTEGER NOT NULL, finish_reason TEXT, body BLOB NOT NULL
) STRICT;
"""

# What makes a file of a version one of the next. Batches of version 1 left their files with the host: none is cleared.
_STEPS = {
    1: "ALTER TABLE batch ADD COLUMN output TEXT; ALTER TABLE batch ADD COLUMN errors TEXT;"
    " ALTER TABLE batch ADD COLUMN cleared REAL;",
    2: "ALTER TABLE attempt ADD COLUMN repair INTEGER;",
}


class _Zstd(threading.local):
    """One compressor and one decompressor a thread. Bodies have a checksum: SQLite has none for its pages."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
        self.decompressor = zstandard.ZstdDecompressor()


_zstd = _Zstd()


def packed(body: bytes) -> bytes:
    """Compressed."""
    return _zstd.compressor.compress(body)


def unpacked(body: bytes) -> bytes:
    """As it was before. Raises ZstdError where it is not what was written."""
    return _zstd.decompressor.decompress(body)


class LedgerFile:
    """An open file: one connection that writes, for one thread at a time, and one that reads."""

    def __init__(self, path: Path) -> None:
        """Opens it, makes it where it is missing. Raises LedgerError."""
        self.path = path
        self._sessions = path.with_name(path.name + "-sessions")
        self._one_thread = threading.Lock()  # an flock keeps out other processes alone
        self._one_reader = threading.Lock()
        self._session: tuple[str, int] | None = None  # its name and the descriptor of its lock
        self.session_id = 0
        self.closed = False
        with self.translated(), contextlib.ExitStack() as undo:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = path.with_name(path.name + ".lock")
            self._locked = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            undo.callback(os.close, self._locked)
            with self.alone():
                self._make_private()
                self.writes = self._connect()
                undo.callback(self.writes.close)
                _require_ours(self.writes, path)
                self.writes.execute("PRAGMA journal_mode = WAL")
                with contextlib.suppress(sqlite3.IntegrityError):  # it has one
                    self.writes.execute("INSERT INTO about VALUES ('id', ?)", (uuid.uuid4().hex,))
                self.id: str = self.writes.execute("SELECT value FROM about WHERE name = 'id'").fetchone()[0]
                self._reads = self._connect()
            undo.pop_all()

    def _make_private(self) -> None:
        """It holds what people wrote. SQLite gives the mode of the database to the files beside it."""
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        if self.path.stat().st_mode & 0o077:
            self.path.chmod(0o600)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, isolation_level=None, timeout=PATIENCE, check_same_thread=False, cached_statements=512
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """No other process writes meanwhile. Raises LedgerBusy after a minute: a process that was stopped holds it."""
        with self._one_thread:
            until = time.monotonic() + PATIENCE
            while True:
                try:
                    fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise _busy(self.path) from None
                    time.sleep(_POLL)
            try:
                yield
            finally:
                fcntl.flock(self._locked, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, and durable when it ends. Raises LedgerError, and then nothing was written."""
        with self.translated(), self.alone():
            if self.closed:
                raise self.closed_error()
            if self._session is None:
                self._start_session()
            with self._atomic():
                yield self.writes

    @contextlib.contextmanager
    def _atomic(self) -> Iterator[None]:
        self.writes.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.writes.execute("COMMIT")
        except BaseException:
            if self.writes.in_transaction:  # some errors have rolled it back already
                self.writes.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection that reads, for one thread at a time. Raises LedgerError."""
        with self._one_reader, self.translated():
            if self.closed:
                raise self.closed_error()
            yield self._reads

    def closed_error(self) -> LedgerError:
        """Why nothing can be done with a ledger that is closed."""
        return LedgerError("the ledger is closed", where=self.path, hint="open it again")

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Errors of SQLite, of the disk and of a body's checksum as ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._ours(error) from error
        except zstandard.ZstdError as error:
            raise _damaged(self.path, "the body of a call is not what was written") from error
        except OSError as error:
            raise LedgerError(
                f"the ledger cannot be used: {error}", where=self.path, hint="look at the folder's rights and room"
            ) from error

    def _ours(self, error: sqlite3.Error) -> LedgerError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and self._is_full()):
            return LedgerFull(
                "no room left for the ledger: what was to be written is not there",
                where=self.path,
                hint="free some space; what is answered is not asked again",
            )
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return _busy(self.path)
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return _damaged(self.path, str(error))
        return LedgerError(
            f"the ledger cannot be used: {error}", where=self.path, hint="look at the file's rights and its disk"
        )

    def _is_full(self) -> bool:
        room = os.statvfs(self.path.parent)
        return room.f_bavail * room.f_frsize < 1 << 16

    def check(self) -> None:
        """Reads everything. Raises DamagedLedger where a page or a sum is wrong. Minutes for a large file."""
        with self.reading() as db:
            db.execute("BEGIN")
            try:
                result = db.execute("PRAGMA integrity_check").fetchone()[0]
                if result != "ok":
                    raise _damaged(self.path, result)
                wrong = db.execute(
                    "SELECT id FROM budget AS b WHERE (spent, held) IS NOT"
                    " (SELECT coalesce(sum(cost), 0), coalesce(sum(held), 0) FROM attempt WHERE budget = b.id)"
                ).fetchall()
                if wrong:
                    raise _damaged(self.path, f"the sums of budget {wrong[0][0]} are not those of its calls")
                orphans = db.execute(
                    "SELECT count(*) FROM answer LEFT JOIN attempt ON attempt.id = answer.attempt"
                    " WHERE attempt.status IS NOT 'answered' OR attempt.key IS NOT answer.key"
                ).fetchone()[0]
                if orphans:
                    raise _damaged(self.path, f"{orphans} answers without their attempt")
            finally:
                db.execute("COMMIT")

    def write_back(self, *, compact: bool = False) -> bool:
        """Writes the WAL back into the database and empties it; `compact`: writes the database again before, without
        free pages. False where another process reads it meanwhile.
        """
        with self.translated(), self.alone():
            if compact:
                self.writes.execute("VACUUM")
            return bool(self.writes.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)

    # Sessions

    def _start_session(self) -> None:
        """What dead sessions had in flight is lost."""
        name, descriptor = uuid.uuid4().hex, None
        try:
            with self._atomic():  # so that no other session is half begun
                self.end_dead_sessions(self.writes)
                self._sessions.mkdir(mode=0o700, exist_ok=True)
                for path in self._sessions.iterdir():
                    if not self.is_alive(path.name):
                        path.unlink(missing_ok=True)
                descriptor = os.open(self._sessions / name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                query = "INSERT INTO session (name, pid, started) VALUES (?, ?, ?) RETURNING id"
                self.session_id = self.writes.execute(query, (name, os.getpid(), time.time())).fetchone()[0]
        except BaseException:
            if descriptor is not None:
                self._unlock_session(name, descriptor)
            raise
        self._session = (name, descriptor)

    def _unlock_session(self, name: str, descriptor: int) -> None:
        (self._sessions / name).unlink(missing_ok=True)
        os.close(descriptor)

    def end_dead_sessions(self, db: sqlite3.Connection) -> None:
        """Ends, within a transaction, those whose process is no more."""
        for number, name in db.execute("SELECT id, name FROM session WHERE ended IS NULL").fetchall():
            if not self.is_alive(name):
                _end_session(db, number)

    def is_alive(self, name: str) -> bool:
        """Whether the session of that name is alive. The lock is shared, so that two who look do not see each other."""
        try:
            descriptor = os.open(self._sessions / name, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def close(self) -> None:
        """Ends the session. The last one who closes writes the WAL back into the database."""
        try:
            if self._session is not None:
                with self.transaction() as db:
                    _end_session(db, self.session_id)
                self._unlock_session(*self._session)
        finally:
            self.closed = True
            with self.translated(), self.alone():
                self._reads.close()
                self.writes.close()
            os.close(self._locked)


def _end_session(db: sqlite3.Connection, session: int) -> None:
    """What it had in flight is lost, save what is in a batch: that can be collected."""
    now = time.time()
    db.execute(
        "UPDATE attempt SET status = 'lost', ended = ? WHERE session = ? AND ended IS NULL AND batch IS NULL",
        (now, session),
    )
    db.execute("UPDATE session SET ended = ? WHERE id = ?", (now, session))


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Makes the tables of a new file, updates those of an older one; refuses what is not ours, or newer."""
    application, version, tables = (
        connection.execute(query).fetchone()[0]
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    if application == 0 and version == 0 and tables == 0:
        marks = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {SCHEMA_VERSION};"
        connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} {marks} COMMIT;")
    elif application != APPLICATION:
        raise _damaged(path, "it is a database of something else")
    elif version > SCHEMA_VERSION:
        raise DamagedLedger(
            f"the ledger is of version {version}, made by a newer gongqing; this one knows {SCHEMA_VERSION}",
            where=path,
            hint="update gongqing",
        )
    else:
        for step in range(version, SCHEMA_VERSION):
            connection.executescript(f"BEGIN IMMEDIATE; {_STEPS[step]} PRAGMA user_version = {step + 1}; COMMIT;")


def _damaged(path: Path, why: str) -> DamagedLedger:
    return DamagedLedger(
        f"the ledger cannot be read: {why}",
        where=path,
        hint="restore it from a backup, or move it and the files beside it away: then every question is paid again",
    )


def _busy(path: Path) -> LedgerBusy:
    return LedgerBusy(
        f"another process has held the ledger for {PATIENCE:.0f} seconds",
        where=path,
        hint="look for a gongqing that was stopped (ps), end it, and ask again",
    )
