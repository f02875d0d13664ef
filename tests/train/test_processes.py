"""Who works in the folder of a run, and that it is known also where whoever started it was killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.erase.training import no_training
from pipelines.errors import Busy
from pipelines.locks import held
from pipelines.settings import ROOT
from pipelines.train.processes import at_work
from pipelines.train.runs import AT_WORK, FOLDER, LOCK, NOTE

STARTS = """
import os, sys
from pathlib import Path
from pipelines.train.processes import at_work, running

run = Path(sys.argv[1])
with at_work(run) as locks, running([sys.executable, "-c", "input()"], os.environ, run / "log.txt", locks) as process:
    print(process.pid, flush=True)
    process.wait()
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / FOLDER / "smoke"
    run.mkdir(parents=True)
    (run / NOTE).write_text("{}")
    return run


def test_one_at_a_time_works_in_the_folder_of_a_run_and_others_in_theirs(run: Path):
    with at_work(run):
        with pytest.raises(Busy, match=f"this run is at work \\(process {os.getpid()}\\)"), at_work(run):
            pass
        with at_work(run.with_name("another")):
            pass
    with at_work(run):
        pass


def test_what_a_killed_command_has_started_is_at_work_and_nothing_is_erased_beside_it(run: Path):
    command = [sys.executable, "-c", STARTS, str(run)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, **pipes) as started:
        trainer = int(started.stdout.readline())
        started.send_signal(signal.SIGKILL)
        started.wait()
        with pytest.raises(Busy, match=f"this run is at work \\(process {trainer}\\)"), at_work(run):
            pass
        with pytest.raises(Busy, match="a run is training") as caught, no_training(run.parents[1]):
            pass
        assert caught.value.where == run
        assert int((run / LOCK).read_text()) == trainer
    with held(run.parents[1] / AT_WORK), held(run / LOCK):  # with its standard input it ends by itself
        pass
    with at_work(run), pytest.raises(Busy), no_training(run.parents[1]):
        pass
    with no_training(run.parents[1]):
        pass
