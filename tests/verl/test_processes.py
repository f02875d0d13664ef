"""Who works in the folder of a run, and that it is known also where the command that started it was killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from train_env import require_train_env

from pipelines.core.files import held
from pipelines.errors import Busy
from pipelines.operations.erase.files import no_training
from pipelines.settings import ROOT
from pipelines.train.processes import at_work, last_words
from pipelines.train.runs import LOCK, NOTE
from pipelines.train.services import PYTHON

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
    run = tmp_path / "training" / "smoke"
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


@pytest.mark.drill("kill")
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
    with held(run.parents[1] / ".locks" / "training"), held(run / LOCK):  # with its standard input it ends by itself
        pass
    with at_work(run), pytest.raises(Busy), no_training(run.parents[1]):
        pass
    with no_training(run.parents[1]):
        pass


@pytest.mark.xdist_group("training")
@pytest.mark.parametrize(
    ("ends", "words"),
    [("print([1][2])", "IndexError: list index out of range"), ("os.kill(os.getpid(), 9)", "so far it went")],
)
def test_of_a_worker_of_torchruns_that_fails_the_last_words_are_its_own(tmp_path: Path, ends: str, words: str):
    require_train_env()
    (tmp_path / "worker.py").write_text(f"import os\nprint('so far it went', flush=True)\n{ends}\n")
    torchrun = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=1", tmp_path / "worker.py"]
    ran = subprocess.run(torchrun, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert ran.returncode == 1
    assert ran.stdout.count("\n") > 30, "it says much itself"
    *_, last, code = last_words(ran.stdout).splitlines()
    assert last == words
    assert "failed (exitcode: " in code


def test_without_torchrun_the_last_words_are_the_end_of_the_log():
    assert last_words("\n".join(map(str, range(40)))) == "\n".join(map(str, range(25, 40)))
    assert last_words("") == ""
