"""Writers of a store, killed with SIGKILL all over a write; and what each left behind.

Run as a process of its own (`python kill_writers.py FOLDER SEED`): it has imported polars, but started none of its
workers, so that a fork of it is whole and costs milliseconds. Prints a line of JSON for every kill.

A step is a line executed in pipelines/store, or a call of the system that Python is about to make there for one.
"""

import itertools
import json
import mmap
import os
import random
import shutil
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow.compute  # noqa: F401 - the first cast imports it: once here, not in every fork
from store_rows import TABLE, drops, groups

from pipelines import store as package
from pipelines.errors import DamagedVersion
from pipelines.store.store import Store, Version

HERE = str(Path(package.__file__).parent)

# In the order in which a write of new content goes through them.
PHASES = (
    "begin",
    "validate",
    "hash",
    "run line",
    "scratch folder",
    "write Parquet",
    "write manifest",
    "fsync",
    "publish",
    "clean up",
    "read back",
    "pointer",
    "describe",
)
_BY_CALL = {
    "_validated": "validate",
    "version_of": "hash",
    "_remember_run": "run line",
    "write_parquet": "write Parquet",
    "publish": "publish",
    "_check_files": "read back",
    "_manifest": "read back",
    "_point": "pointer",
    "version": "describe",
}
_CALLS_OF_THE_SYSTEM = {"open", "fcntl.flock", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir"}


def calls_within_write(frame: FrameType | None) -> list[str] | None:
    """The functions from `Store.write` down to `frame`; None outside of it."""
    calls: list[str] = []
    while frame is not None:
        if frame.f_code is Store.write.__code__:
            return calls[::-1]
        calls.append(frame.f_code.co_name)
        frame = frame.f_back
    return None


def phase_of(calls: list[str]) -> str | None:
    """What a write is doing; None where it is between two phases."""
    if not calls:
        return None
    if calls[0] != "_publish":
        return _BY_CALL.get(calls[0])
    if "publish" in calls:
        return "fsync" if "sync" in calls else "publish"
    if "staging" in calls:
        return "clean up" if "__exit__" in calls else "scratch folder"
    return next((_BY_CALL[call] for call in calls if call in _BY_CALL), "write manifest")


class Steps:
    """Counts the steps of a write, shows the phase to the parent, and kills itself at step `deadly`."""

    def __init__(self, shown: mmap.mmap, deadly: int | None = None) -> None:
        self.shown = shown
        self.deadly = deadly
        self.phases: list[str] = []

    def follow(self, write: Callable[[], Any]) -> None:
        sys.addaudithook(self._on_audit)
        sys.settrace(self._on_call)
        write()
        sys.settrace(None)

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._on_line if frame.f_code.co_filename.startswith(HERE) else None

    def _on_line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self._step(frame)
        return self._on_line

    def _on_audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _CALLS_OF_THE_SYSTEM:
            self._step(sys._getframe(1))

    def _step(self, frame: FrameType) -> None:
        calls = calls_within_write(frame)
        if calls is None:
            return
        phase = phase_of(calls) or (self.phases[-1] if self.phases else PHASES[0])
        self.phases.append(phase)
        self.shown[0] = PHASES.index(phase)
        if self.deadly == len(self.phases) - 1:
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Scenario:
    """A store as it is before, a write, and what may be found when the writer was killed."""

    name: str
    prepare: Callable[[Store], Any]
    write: Callable[[Store], Version]
    look: Callable[[Store], None]


OLD, NEW = groups(60, "old"), groups(90, "new")


def write_old(store: Store) -> Version:
    return store.write(TABLE, OLD, drops("p1"), code="1")


def write_new(store: Store, code: str = "2") -> Version:
    return store.write(TABLE, NEW, drops("p1", "p2"), code=code)


def old_or_new(store: Store) -> None:
    """The pointer leads to one of both, whole, with exactly its rows."""
    version = store.version(TABLE)
    store.verify(version)
    rows, dropped = store.read(TABLE).collect(), store.read_dropped(TABLE).collect()
    either = [(OLD, drops("p1")), (NEW, drops("p1", "p2"))]
    assert any(rows.equals(kept) and dropped.equals(gone) for kept, gone in either), f"wrong rows in {version.version}"
    assert store.read(TABLE, version.version).collect().equals(rows)


def write_both(store: Store) -> None:
    """The new content is known, and the old one current."""
    write_new(store)
    write_old(store)


def no_run_is_lost(store: Store) -> None:
    old_or_new(store)
    known = next(version for version in store.versions(TABLE) if version.rows == NEW.height)
    assert [run.code for run in known.manifest.runs] in (["2"], ["2", "3"]), "a run line is lost"


def write_and_damage(store: Store) -> None:
    """The new content is current, and cut short."""
    write_old(store)
    version = write_new(store)
    path = Path(store.storage.uri(f"{TABLE}/{version.version}/{version.manifest.files[0].path}"))
    path.write_bytes(path.read_bytes()[:100])


def damaged_or_new(store: Store) -> None:
    """Where the version was damaged before it may still be, but never pass for whole."""
    try:
        version = store.version(TABLE)
        store.verify(version)
    except DamagedVersion:
        return
    assert store.read(TABLE).collect().equals(NEW), "wrong rows"


# The scenario; kills spread evenly over its steps; kills at random times.
SPREAD = (
    (Scenario("new content", write_old, write_new, old_or_new), 110, 35),
    (Scenario("known content, another run", write_both, lambda store: write_new(store, "3"), no_run_is_lost), 40, 15),
    (Scenario("damaged content", write_and_damage, write_new, damaged_or_new), 25, 0),
)


@dataclass
class Kill:
    """One killed writer."""

    scenario: str
    how: str
    phase: str
    problem: str


def in_child(work: Callable[[], Any]) -> Any:
    """The result of `work`, done in a fork."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            told = json.dumps(["", work()])
        except BaseException as error:
            told = json.dumps([f"{type(error).__name__}: {error}", None])
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    problem, result = json.loads(told)
    if problem:
        raise RuntimeError(problem)
    return result


class Trial:
    """A scenario, and a store to kill its writers in."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        self.scenario = scenario
        self.before = folder / scenario.name / "data"
        self.root = folder / scenario.name / "killed" / "data"
        self.shown = mmap.mmap(-1, 1)
        in_child(lambda: str(scenario.prepare(Store(self.before))))

    def fresh(self) -> Store:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.before, self.root)
        self.shown[0] = 0
        return Store(self.root)

    def whole_write(self) -> tuple[list[str], float]:
        """The phases of all its steps, and its seconds."""
        store = self.fresh()

        def work() -> Any:
            steps, started = Steps(self.shown), time.perf_counter()
            steps.follow(lambda: self.scenario.write(store))
            return steps.phases, time.perf_counter() - started

        return tuple(in_child(work))

    def kill_at(self, step: int) -> Kill:
        child = self._writer(step)
        if not self._was_killed(child):
            raise RuntimeError(f"the writer never came to step {step}")
        return self._look(f"step {step}")

    def kill_after(self, seconds: float) -> Kill | None:
        """None where the writer was faster."""
        child = self._writer(None)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        return self._look(f"{seconds * 1e3:.1f} ms") if self._was_killed(child) else None

    def _writer(self, deadly: int | None) -> int:
        store = self.fresh()
        if (child := os.fork()) == 0:
            try:
                Steps(self.shown, deadly).follow(lambda: self.scenario.write(store))
            finally:
                os._exit(0)
        return child

    @staticmethod
    def _was_killed(child: int) -> bool:
        status = os.waitpid(child, 0)[1]
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL

    def _look(self, how: str) -> Kill:
        phase = PHASES[self.shown[0]]
        try:
            in_child(self._look_and_write_again)
        except RuntimeError as error:
            return Kill(self.scenario.name, how, phase, str(error))
        return Kill(self.scenario.name, how, phase, "")

    def _look_and_write_again(self) -> None:
        self.scenario.look(Store(self.root))
        store = Store(self.root)
        version = self.scenario.write(store)
        store.verify(version)
        assert store.read(TABLE).collect().equals(NEW), "the next write did not take"
        left = {path.name for path in (self.root / ".tmp").iterdir()}
        assert left == {"alone"}, f"left in the scratch folder: {left}"


def spread(n: int, phases: list[str]) -> list[int]:
    """`n` steps, evenly from the first to the last; and the first step of every phase that they would miss."""
    even = {round(i * (len(phases) - 1) / (n - 1)) for i in range(n)}
    missed = set(phases) - {phases[step] for step in even}
    return sorted(even | {phases.index(phase) for phase in missed})


def kills(folder: Path, seed: int) -> Iterator[Kill]:
    random_time = random.Random(seed)
    for scenario, at_steps, at_times in SPREAD:
        trial = Trial(folder, scenario)
        phases, _ = trial.whole_write()
        yield from map(trial.kill_at, spread(at_steps, phases))
        lasts = statistics.median(trial.whole_write()[1] for _ in range(3))
        tries = (trial.kill_after(random_time.uniform(0, lasts)) for _ in itertools.count())
        yield from itertools.islice(filter(None, tries), at_times)


def worker_threads() -> list[str]:
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return [name for name in names if name.startswith(("polars-0", "tokio", "async"))]


if __name__ == "__main__":
    if worker_threads():
        sys.exit(f"a fork would not be whole: {worker_threads()}")
    for kill in kills(Path(sys.argv[1]), int(sys.argv[2])):
        sys.stdout.write(json.dumps(asdict(kill)) + "\n")
        sys.stdout.flush()
