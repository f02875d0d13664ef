"""Releasers killed with SIGKILL before every other call of the system that they make; and what each left behind.

Run as a process of its own (`python kill_releasers.py FOLDER`), which starts no worker thread, so that a fork of it is
whole. Prints a line of JSON for every kill: what was found, and what of it should not be.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from release_rows import made, triplets

from pipelines.store.releases import Releases

ROWS = {"rm_triplets": triplets(*((f"s:{number}/a", ("train", "test")[number % 2]) for number in range(40)))}
_CALLS = {"open", "fcntl.flock", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir", "os.chmod"}


def release(home: Path) -> None:
    """As `pipelines.release.assemble` goes about it: written, published, then pointed to."""
    if "v1" not in Releases(home):
        made(home, "v1", ROWS)
    Releases(home).promote("v1")


def die_at(step: int) -> None:
    """Have this process kill itself before its `step`-th call."""
    left = step

    def count(event: str, _: tuple[Any, ...]) -> None:
        nonlocal left
        if event in _CALLS:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def killed(home: Path, step: int) -> bool:
    """Whether a releaser was killed at `step`; it is done by then if not."""
    if (child := os.fork()) == 0:
        die_at(step)
        release(home)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        sys.exit(f"the releaser failed at step {step}")
    return os.WIFSIGNALED(status)


def look(home: Path) -> tuple[str, str]:
    """What is there, and what is wrong with it; then the same is asked for again, and must be done."""
    releases = Releases(home)
    names = releases.names()
    current = releases.current()
    found = "current" if current else "published" if names else "nothing"
    if names not in ([], ["v1"]):
        return found, f"releases: {names}"
    before = releases.read("v1") if names else None
    release(home)
    after = Releases(home).current()
    if after is None or (before is not None and before != after):
        return found, "the release was made anew"
    left = sorted(path.name for path in (home / "releases" / ".tmp").iterdir())
    return found, "" if left == ["alone"] else f"left in the scratch folder: {left}"


def main(folder: Path) -> None:
    step = 0
    while True:
        home = folder / "home"
        shutil.rmtree(home, ignore_errors=True)
        if not killed(home, step):
            return
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            try:
                told = look(home)
            except BaseException as error:
                told = ("", f"{type(error).__name__}: {error}")
            os.write(writing, json.dumps({"step": step, "found": told[0], "problem": told[1]}).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            sys.stdout.write(pipe.read() + "\n")
        os.waitpid(child, 0)
        step += 2


if __name__ == "__main__":
    main(Path(sys.argv[1]))
