"""The one crash harness: a writer is killed with SIGKILL at steps all over its work, run again, and compared.

`python crash_drill.py WRITER FOLDER` has imported polars, but started none of its workers, so that a fork of it is
whole and costs milliseconds. It prints a line of JSON for every kill. A step is a line executed in one of the writer's
own files, in any thread, or a call of the system below one. Random times also fall into code that is not Python's.
"""

import ctypes
import importlib
import json
import mmap
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pyarrow.compute  # noqa: F401 - the first cast imports it: once here, not in every fork

from pipelines.core import code_version
from pipelines.settings import ROOT

SYSTEM_CALLS = {
    *("open", "fcntl.flock", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir", "os.chmod"),
    *("shutil.copytree", "shutil.rmtree", "sqlite3.connect"),
}
SEED = 20261121


class Writer(NamedTuple):
    """A folder as it is before, a work on it, and what must hold of the folder."""

    prepare: Callable[[Path], Any]
    write: Callable[[Path], Any]  # also what is run again after a kill
    content: Callable[[Path], dict[str, Any]]  # equal after any kill and another run
    watched: tuple[str, ...]  # parts of pipelines/ whose lines are steps
    spread: int  # kills spread over all steps
    functions: int  # kills spread over the first steps of the functions
    timed: int = 0  # kills at random times
    killed: Callable[[Path], Any] = lambda folder: None  # raises where a kill left what must not be


class Steps:
    """Counts the steps of a work where the parent sees them; kills this process at step `deadly`."""

    def __init__(self, watched: tuple[str, ...], count: mmap.mmap, deadly: int | None = None) -> None:
        self.watched = tuple(str(ROOT / "pipelines" / part) for part in watched)
        assert all(Path(path).exists() for path in self.watched)
        self.count, self.deadly = ctypes.c_uint64.from_buffer(count), deadly
        self._first: dict[tuple[str, str], int] = {}  # step of each file's function
        self.works = False

    def follow(self, work: Callable[[], Any]) -> None:
        sys.addaudithook(self._on_audit)
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)
        self.works = True
        work()
        self.works = False
        sys.settrace(None)

    def _on_call(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        return self._on_line if frame.f_code.co_filename.startswith(self.watched) else None

    def _on_line(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            self._step(frame)
        return self._on_line

    def _on_audit(self, event: str, _arguments: tuple[Any, ...]) -> None:
        if not self.works or event not in SYSTEM_CALLS:  # to look for a frame is an event as well
            return
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not frame.f_code.co_filename.startswith(self.watched):
            frame = frame.f_back
        if frame is not None:
            self._step(frame)

    def _step(self, frame: FrameType) -> None:
        if self.count.value == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        self._first.setdefault((frame.f_code.co_filename, frame.f_code.co_qualname), self.count.value)
        self.count.value += 1

    @property
    def functions(self) -> dict[str, int]:
        """The first step of each function that was called, by its name."""
        return {f"{Path(file).stem}.{name}": step for (file, name), step in self._first.items()}


def in_fork(work: Callable[[], Any]) -> Any:
    """The result of `work`, done in a fork; raises RuntimeError where it raised."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            ended = ["", work()]
        except BaseException as error:
            ended = [f"{type(error).__name__}: {error}", None]
        with os.fdopen(writing, "w") as pipe:
            json.dump(ended, pipe, default=repr)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        problem, result = json.load(pipe)
    os.waitpid(child, 0)
    if problem:
        raise RuntimeError(problem)
    return result


def evenly(items: Sequence[Any], count: int) -> list[Any]:
    """So many of the items at most, from the first to the last."""
    count = min(count, len(items))
    return [items[round(i * (len(items) - 1) / max(1, count - 1))] for i in range(count)]


class Drill:
    """A writer, and a folder to kill it in."""

    def __init__(self, writer: Writer, folder: Path) -> None:
        self.writer, self.before, self.home = writer, folder / "before", folder / "home"
        self.count = mmap.mmap(-1, 8)
        self.before.mkdir()
        in_fork(lambda: self.writer.prepare(self.before))

    def kills(self) -> Iterator[dict[str, Any]]:
        functions, steps, seconds, wanted = self._undisturbed()
        place_of = dict(evenly(sorted((step, place) for place, step in functions.items()), self.writer.functions))
        for step in sorted({*evenly(range(steps), self.writer.spread), *place_of}):
            if self._die(step):
                yield {"step": step, "place": place_of.get(step, ""), **self._compare(wanted)}
        chance = random.Random(SEED)
        for _ in range(self.writer.timed):
            if self._die(None, chance.uniform(0, seconds)):
                yield {"step": None, "place": "at a random time", **self._compare(wanted)}

    def _fresh(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(self.before, self.home)
        self.count[:8] = bytes(8)

    def _undisturbed(self) -> tuple[dict[str, int], int, float, dict[str, Any]]:
        """The first step of every function, how many steps and seconds the work takes, and what it makes."""
        self._fresh()

        def work() -> list[Any]:
            steps, started = Steps(self.writer.watched, self.count), time.perf_counter()
            steps.follow(lambda: self.writer.write(self.home))
            return [steps.functions, steps.count.value, time.perf_counter() - started, sorted(sys.modules)]

        functions, steps, seconds, writing = in_fork(work)
        assert steps > 1, "nothing of this writer is watched"
        wanted, reading = in_fork(lambda: [self.writer.content(self.home), sorted(sys.modules)])
        for module in {*writing, *reading} - sys.modules.keys():  # once, not in every fork
            with suppress(ImportError):
                importlib.import_module(module)
        for module in {*writing, *reading}:  # so are ours parsed, as for a version of code
            if path := code_version._file_of(module):
                code_version._imports(path.read_bytes())
        return functions, steps, seconds, wanted

    def _die(self, deadly: int | None, seconds: float | None = None) -> bool:
        """Does the work in a fork that is killed at a step or after some seconds; False: it was done before, as threads
        take their steps in another order each time.
        """
        self._fresh()
        if (child := os.fork()) == 0:
            try:
                Steps(self.writer.watched, self.count, deadly).follow(lambda: self.writer.write(self.home))
            finally:
                os._exit(0)
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    def _compare(self, wanted: dict[str, Any]) -> dict[str, Any]:
        def again() -> list[str]:
            self.writer.killed(self.home)
            self.writer.write(self.home)
            made = self.writer.content(self.home)
            return sorted(name for name in wanted.keys() | made.keys() if wanted.get(name) != made.get(name))

        try:
            return {"problem": "", "differs": in_fork(again)}
        except RuntimeError as error:
            return {"problem": str(error), "differs": []}


if __name__ == "__main__":
    from crash_writers import WRITERS

    for kill in Drill(WRITERS[sys.argv[1]], Path(sys.argv[2])).kills():
        sys.stdout.write(json.dumps(kill) + "\n")
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    workers = [name for name in names if name.startswith(("polars-0", "tokio", "async"))]
    assert not workers, f"a fork was not whole: {workers}"
