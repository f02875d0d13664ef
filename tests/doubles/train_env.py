"""What tests train in: the environment, a home with a release, a tiny model to start from, the command."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pipelines.settings import ROOT, Rewards
from pipelines.store.releases import Releases
from pipelines.train.experiment import Planned, plan_runs, read_experiment
from pipelines.train.runs import LOCK
from pipelines.train.services import PYTHON

QUIET = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def require_train_env() -> None:
    """Fails where there is no environment to train in, which `make test` makes: nothing is left out without it."""
    if not PYTHON.exists():
        pytest.fail("there is no .venv-train: make train-env")


def warm(home: Path, run: Path, rows: str, *options: str) -> Path:
    """The folder of a run with the tiny model that it starts from, made of the train rows of a set of `v1`."""
    run.mkdir(parents=True)
    [path] = (Releases(home).folder("v1") / rows).glob("train-*.parquet")
    in_train_env("-m", "pipelines.train.tiny", run / "start", path, *options)
    return run


def in_train_env(*words: object, stdin: Any = None, cwd: Path | None = None, **environment: str) -> str:
    """Runs Python in `.venv-train`, with `stdin` as JSON; its output."""
    require_train_env()
    ran = subprocess.run(
        [str(PYTHON), *map(str, words)],
        input=json.dumps(stdin),
        env={**os.environ, **QUIET, **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def script_result(script: str, *words: object, **named: Any) -> Any:
    """The last line that a script prints in `.venv-train`, which is JSON."""
    return json.loads(in_train_env("-c", script, *words, **named).splitlines()[-1])


def start_command(home: Path, *words: object, **environment: str) -> "subprocess.Popen[str]":
    """The command `gongqing`, as it works."""
    code = "import sys; from pipelines.cli import main; sys.argv[0] = 'gongqing'; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        cwd=ROOT,
        env={**os.environ, "GONGQING_HOME": str(home), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def settings_options(settings: dict[str, Any]) -> list[str]:
    """Settings as options of `gongqing train`."""
    return [f"--set={key}={json.dumps(value) if isinstance(value, bool) else value}" for key, value in settings.items()]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a JSON Lines file, or of all that lie in a folder."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


# An experiment of verl's SFT and the contrastive training.
STEPS, SAVED, ROWS, SEED = 20, 5, 160, 7
EXPERIMENT = f"""
name = "real"
preset = "cpu_smoke"
seeds = [{SEED}]
rows = {ROWS}

[[ablations]]
recipe = "unifireward"

[[ablations]]
recipe = "empathy_encoder"

[settings.sft]
"trainer.total_training_steps" = {STEPS}
"trainer.save_freq" = {SAVED}
"data.train_batch_size" = 8

[settings.contrastive]
epochs = 1
"""


class Trained(NamedTuple):
    """An experiment that was killed, and started again: its file, its plan, what the first start printed to stderr, the
    processes of the trainer that it left behind, and the results as the second start printed them.
    """

    file: Path
    plan: list[Planned]
    killed: str
    left: list[str]
    results: list[dict[str, Any]]


def written_experiment(folder: Path, text: str) -> Path:
    """The file of an experiment."""
    path = folder / "ablations.toml"
    path.write_text(text, encoding="utf-8")
    return path


def train_experiment(home: Path, folder: Path) -> Trained:
    """`EXPERIMENT` in a home: its trainer is killed behind the first checkpoint of its first run, and it is started
    again.
    """
    file = written_experiment(folder, EXPERIMENT)
    plan = plan_runs(home, read_experiment(file), Rewards())
    run = plan[0].run
    process = start_command(home, "experiment", file)
    while max(run.metrics(), default=0) <= SAVED and process.poll() is None:
        time.sleep(0.05)
    os.kill(int((run.folder / LOCK).read_text()), signal.SIGKILL)
    _, killed = process.communicate(timeout=120)
    left = [words for words in commands().values() if str(run.folder) in words]
    process = start_command(home, "experiment", file, "--json")
    stdout, stderr = process.communicate(timeout=1200)
    assert process.returncode == 0, stderr
    return Trained(file, plan, killed, left, json.loads(stdout))


def commands() -> dict[int, str]:
    """The command lines of all processes."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            found[int(path.parent.name)] = path.read_bytes().replace(b"\0", b" ").decode()
    return found
