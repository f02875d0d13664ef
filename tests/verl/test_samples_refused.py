"""Warm starts and reward models whose samples are too long for their model are refused before anything is trained."""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipelines.errors import Busy, RequestError
from pipelines.operations.erase.training import no_training
from pipelines.settings import ROOT
from pipelines.train.launch import Run, rows_of_arm
from pipelines.train.prepare import prepare
from pipelines.train.recipe import recipe
from pipelines.train.runs import LOCK
from pipelines.train.services import PYTHON
from pipelines.train.trainers import TRAINERS

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("training")]


@pytest.fixture(scope="module")
def start(training_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model, with a tokenizer of its own."""
    start = tmp_path_factory.mktemp("start") / "tiny"
    rows = prepare(training_home, recipe("empathy_sft"), "cpu_smoke").files["train"]
    command = [str(PYTHON), "-m", "pipelines.train.tiny", str(start), *map(str, rows)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return start


def run_of(home: Path, start: Path, name: str, most_rows: int | None = None, **given: int) -> Run:
    told = {"model.path": str(start), **given}
    return prepare(home, recipe(name), "cpu_smoke", name=f"long-{name}", most_rows=most_rows, given=told)


TOO_LONG = r"samples of train are longer than 40 tokens \(100\.0%; at most 1% may be"


@pytest.mark.parametrize("name", ["compeer_sft", "unifireward"])
def test_samples_longer_than_the_model_reads_are_refused(training_home: Path, start: Path, name: str):
    with pytest.raises(RequestError, match=TOO_LONG):
        run_of(training_home, start, name, **{"data.max_length": 40}).ready()


def test_they_are_before_anything_is_trained_and_nothing_is_erased_while_they_are_counted(
    training_home: Path, start: Path
):
    run = run_of(training_home, start, "empathy_sft", most_rows=20, **{"data.max_length": 40})
    with ThreadPoolExecutor() as pool:
        training = pool.submit(run.train, lambda step, metrics: None)
        while not rows_of_arm(run.folder, "train").exists() and not training.done():
            time.sleep(0.05)
        with pytest.raises(Busy, match="a run is training") as caught, no_training(training_home):
            pass
        assert caught.value.where == run.folder
        with pytest.raises(RequestError, match=TOO_LONG):
            training.result()
    with no_training(training_home):
        left = {path.name for path in run.folder.iterdir()}
        assert left == {LOCK}, "no rows, of which nobody who erases would know"


@pytest.mark.parametrize("name", ["empathy_sft", "mindchat_ecot"])
def test_fewer_rows_than_one_batch_are_refused(training_home: Path, start: Path, name: str):
    told = {TRAINERS[recipe(name).trainer].model: str(start)}
    run = prepare(training_home, recipe(name), "cpu_smoke", name=f"few-{name}", most_rows=3, given=told)
    with pytest.raises(RequestError, match=r"there are 3 training rows, and one batch takes \d") as caught:
        run.ready()
    assert "data.train_batch_size" in caught.value.hint
    assert {path.name for path in run.folder.iterdir()} == {LOCK}


def test_what_a_warm_start_teaches_to_write_is_held_against_what_its_policy_may_write(training_home: Path, start: Path):
    key, limit = "+data.max_response_length", recipe("empathy_coe").paper["data.max_response_length"]
    assert recipe("empathy_sft").ours[key] == limit
    samples, targets = run_of(training_home, start, "empathy_sft", **{key: limit}).lengths()
    assert samples.startswith("samples of train: ")
    assert "0 over 4,096 (0.00%)" in samples
    assert targets.startswith("targets of train: ")
    assert f"0 over {limit:,} (0.00%)" in targets
    with pytest.raises(RequestError, match="targets of train are longer than 20 tokens") as caught:
        run_of(training_home, start, "empathy_sft", **{key: 20}).lengths()
    assert "+data.max_response_length: --set, or [settings] of an experiment" in caught.value.hint
