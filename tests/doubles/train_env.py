"""What tests train in: the environment, a home with a release, a tiny model to start from."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pipelines.operations.release import release
from pipelines.settings import ROOT, Settings
from pipelines.store.releases import Releases
from pipelines.train.services import PYTHON


def require_train_env() -> None:
    """Fails where there is no environment to train in, which `make test` makes: nothing is left out without it."""
    if not PYTHON.exists():
        pytest.fail("there is no .venv-train: make train-env")


def released(sample_home: Path, folder: Path) -> Path:
    """A home of its own with the samples, below a folder, and a release `v1` of all that rules made."""
    require_train_env()
    home = folder / "home"
    shutil.copytree(sample_home, home)
    release(home, "v1", allow=["not_from_a_model"], settings=Settings())
    return home


def warm(home: Path, run: Path, rows: str, *options: str) -> Path:
    """The folder of a run with the tiny model that it starts from, made of the train rows of a set of `v1`."""
    run.mkdir(parents=True)
    [path] = (Releases(home).folder("v1") / rows).glob("train-*.parquet")
    subprocess.run(
        [PYTHON, "-m", "pipelines.train.tiny", run / "start", path, *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
    )
    return run
