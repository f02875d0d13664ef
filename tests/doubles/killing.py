"""Commands of gongqing, which a test may kill with SIGKILL at a moment that a fact chooses; and what they leave.

A fact is something that the command has done and that another process can see: it comes at the same place of the work
on every machine.
"""

import fcntl
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from answered import GONGQING

from pipelines.operations.doctor import examine
from pipelines.settings import ROOT
from pipelines.store import Store, Version
from schemas.tables import PARTITIONED, TABLES

_POSTS = ROOT / "samples" / "posts.jsonl"
# The command that imports the sample posts.
IMPORT_POSTS = ("import", "mapped", str(_POSTS), "--mapping", str(_POSTS.with_suffix(".toml")), "--as", "sample")

_HALF = {".part", ".partial", ".tmp", ".new"}  # what is written under such a name is not yet what it will be
_PATIENCE = 300.0  # seconds until a fact must have come

_MEASURED = """
import atexit
from pipelines.cli import main

@atexit.register
def say_peak():
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
    print("peak", int(peak) // 1024, flush=True)

main()
"""


class Command:
    """A command of gongqing on a home, in a session of its own, killed with the `with` block if it still works. What it
    prints can be read while it works.
    """

    def __init__(
        self, home: Path, *arguments: str, program: Sequence[str] = GONGQING, umask: int = -1, **environment: str
    ) -> None:
        self.home, self.runs_before = home, len(states_of_runs(home))
        self._log = home.with_name(f"{home.name}-{Path(arguments[0]).name}-{time.monotonic_ns()}.log")
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("GONGQING_", "DAGSTER_"))}
        environment = {**ours, "GONGQING_HOME": str(home), **environment}
        with self._log.open("wb") as log:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
            options = {"env": environment, "cwd": ROOT, "start_new_session": True, "umask": umask, **pipes}
            self.process = subprocess.Popen([*program, *arguments], **options)

    @property
    def printed(self) -> str:
        """All that it has printed so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def works(self) -> bool:
        return self.process.poll() is None

    def wait(self) -> int:
        """Its exit code."""
        return self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Kills it and all that it has started."""
        if self.works():
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def done(home: Path, *arguments: str, **options: Any) -> str:
    """What a command printed; it succeeded."""
    with Command(home, *arguments, **options) as command:
        assert command.wait() == 0, command.printed
        return command.printed


def measured(home: Path, *arguments: str, **environment: str) -> tuple[int, str, int]:
    """Exit code, what the command printed (no fake model in it), and the MB that it had at most."""
    with Command(home, *arguments, program=(sys.executable, "-c", _MEASURED), **environment) as command:
        code, (printed, peak) = command.wait(), command.printed.rsplit("peak ", 1)
    return code, printed, int(peak)


def failed(home: Path, *arguments: str) -> str:
    """The message of a command that fails: ours, with a place and a hint, and the exit code of failed work."""
    with Command(home, *arguments) as command:
        code, printed = command.wait(), command.printed
    assert code == 1, printed
    message = printed[printed.rindex("gongqing: ") :]
    for part in ("\n  where: ", "\n  hint: "):
        assert part in message, printed
    for part in ("report it", "Traceback"):
        assert part not in message, printed
    return message


class DoneBeforeError(AssertionError):
    """A command was done before it could be killed: on a machine at work, whoever waits may sleep through a moment."""


def wait_until(holds: Callable[[Command], bool], *commands: Command) -> None:
    """Waits until a fact holds for one of the commands, of which one at least must be at work."""
    deadline = time.monotonic() + _PATIENCE
    while not any(map(holds, commands)):
        printed = "\n".join(one.printed for one in commands)
        if time.monotonic() > deadline:
            raise AssertionError(printed)
        if not any(one.works() for one in commands):
            raise DoneBeforeError(printed) if not any(one.wait() for one in commands) else AssertionError(printed)
        time.sleep(0.001)


def killed(home: Path, *arguments: str, when: Callable[[Command], bool], seconds: float = 0, **options: Any) -> None:
    """Starts a command and kills it so long after `when` holds: in the middle of its work, or the drill is none."""
    with Command(home, *arguments, **options) as command:
        wait_until(when, command)
        time.sleep(seconds)
        if not command.works():
            raise DoneBeforeError(command.printed)


# Facts


def starts(_: Command) -> bool:
    return True


def prints(table: str) -> Callable[[Command], bool]:
    """It has said that the table is made: it is at work on what comes next."""
    return lambda command: f"{table}: " in command.printed


def publishes(table: str) -> Callable[[Command], bool]:
    """A version of the table is on the disk; whether the pointer leads to it, and Dagster knows of it, is open."""
    pattern = f"data/{table}/*/*/manifest.json" if table in PARTITIONED else f"data/{table}/*/manifest.json"
    return lambda command: next(command.home.glob(pattern), None) is not None


def creates_a_run(command: Command) -> bool:
    """Dagster has a run of this command, whether it has begun or not: a state that passes could be missed."""
    return len(states_of_runs(command.home)) > command.runs_before


# What is left


def states_of_runs(home: Path) -> list[str]:
    path = home / ".dagster" / "storage" / "history" / "runs.db"
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as runs:
            return [state for (state,) in runs.execute("SELECT status FROM runs")]
    except sqlite3.OperationalError:  # there is none yet, or it has no tables yet
        return []


def versions(home: Path) -> list[Version]:
    """All versions of every table, or of every part of one."""
    store = Store(home / "data")
    parts = {table: store.partitions(table) if table in PARTITIONED else [None] for table in TABLES}
    return [version for table, names in parts.items() for name in names for version in store.versions(table, name)]


def current(home: Path) -> dict[str, str]:
    """The current version of every table, or of every part of one."""
    store = Store(home / "data")
    return {one.name: one.version for table in TABLES for one in store.current(table)}


def leftovers(home: Path) -> list[str]:
    """Files that are half written, the store's scratch, and locks that a process still holds."""
    scratch = [path for path in (home / "data" / ".tmp").glob("*") if path.name != "alone"]
    files = [path for path in home.rglob("*") if path.is_file() and ".dagster" not in path.parts]
    half = [path for path in files if path.suffix in _HALF or path.name.startswith("dagster.yaml.")]
    locks = [path for path in files if ".locks" in path.parts or path.suffix == ".lock" or path.name == "lock"]
    return [str(path.relative_to(home)) for path in (*scratch, *half, *filter(_is_held, locks))]


def _is_held(path: Path) -> bool:
    with path.open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def require_sound(home: Path) -> None:
    """The doctor finds nothing broken and every table sound; nothing half written, held or at work is left."""
    tables = current(home)
    assert [one for one in examine(home) if one.state == "broken" or (one.what in tables and one.state != "ok")] == []
    assert leftovers(home) == []
    runs = set(states_of_runs(home))
    assert runs <= {"SUCCESS", "FAILURE", "CANCELED"}, "Dagster would show one as coming, or at work, for ever"


def home_with(source: Path, target: Path, tables: Iterable[str]) -> Path:
    """A home with the current versions of these tables of another one; and with its author key, if it has one."""
    target.mkdir(exist_ok=True)
    for table in tables:
        shutil.copytree(source / "data" / table, target / "data" / table)
    for version in versions(target):
        if not version.current:
            Store(target / "data").discard(version)
    if (source / "author.key").exists():
        shutil.copy(source / "author.key", target)
    return target
