"""What tests train in: the environment, a home with a release, a tiny model to start from, the command."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipelines.operations.release import release
from pipelines.settings import ROOT, Settings
from pipelines.store.releases import Releases
from pipelines.train.services import PYTHON

QUIET = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def require_train_env() -> None:
    """Fails where there is no environment to train in, which `make test` makes: nothing is left out without it."""
    if not PYTHON.exists():
        pytest.fail("there is no .venv-train: make train-env")


def released(sample_home: Path, folder: Path) -> Path:
    """A home with the samples, below a folder, and a release `v1` of all that rules made."""
    require_train_env()
    home = folder / "home"
    shutil.copytree(sample_home, home)
    release(home, "v1", allow=["not_from_a_model"], settings=Settings())
    return home


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
