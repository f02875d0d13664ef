"""Warm starts and reward models whose samples are too long for their model are refused before anything is trained."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipelines.errors import Busy, RequestError
from pipelines.operations.erase.files import no_training
from pipelines.train.launch import Run, rewritten_rows
from pipelines.train.prepare import prepare
from pipelines.train.recipe import load_recipe
from pipelines.train.runs import LOCK, MODEL
from pipelines.train.trainers import TRAINERS

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("training")]

TOO_LONG = r"samples of train are longer than 40 tokens \(100\.0%; at most 1% may be"


def run_of(warm_start: Path, name: str, most_rows: int | None = None, **settings: int) -> Run:
    model = {TRAINERS[load_recipe(name).trainer].model: str(warm_start / MODEL)}
    options = {"name": f"long-{name}", "most_rows": most_rows, "settings": model | settings}
    return prepare(warm_start.parents[1], load_recipe(name), "cpu_smoke", **options)


def test_samples_longer_than_the_model_reads_are_refused_before_training_and_nothing_is_erased_while_they_are_counted(
    training_home: Path, warm_start: Path
):
    run = run_of(warm_start, "empathy_sft", most_rows=20, **{"data.max_length": 40})
    with ThreadPoolExecutor() as pool:
        training = pool.submit(run.train, lambda step, metrics: None)
        while not rewritten_rows(run.folder, "train").exists() and not training.done():
            time.sleep(0.05)
        with pytest.raises(Busy, match="a run is training") as caught, no_training(training_home):
            pass
        assert caught.value.where == run.folder
        with pytest.raises(RequestError, match=TOO_LONG):
            training.result()
    with no_training(training_home):
        left = {path.name for path in run.folder.iterdir()}
        assert left == {LOCK}, "no rows, which an erasure would not find"


def test_fewer_rows_than_one_batch_are_refused(warm_start: Path):
    run = run_of(warm_start, "unifireward", most_rows=3)
    with pytest.raises(RequestError, match=r"there are 3 training rows, and one batch takes \d") as caught:
        run.prepare_rows()
    assert "data.train_batch_size" in caught.value.hint
    assert {path.name for path in run.folder.iterdir()} == {LOCK}


def test_targets_of_a_warm_start_are_limited_by_what_its_policy_may_write(warm_start: Path):
    """Of the samples none is too long by the recipe's own limit: they are not in the message."""
    key = "+data.max_response_length"
    assert load_recipe("empathy_sft").ours[key] == load_recipe("empathy_coe").paper["data.max_response_length"]
    run = run_of(warm_start, "empathy_sft", **{key: 20})
    with pytest.raises(RequestError, match=r"^\d+ of \d+ targets of train are longer than 20 tokens") as caught:
        run.lengths()
    assert "+data.max_response_length: --set, or [settings] of an experiment" in caught.value.hint
