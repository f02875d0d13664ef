"""Experiments: arms on equal rows and seeds, one table."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.errors import RequestError, UnknownName, UnreadableFile
from pipelines.settings import ROOT, Rewards
from pipelines.train.experiment import conduct, read
from pipelines.train.runs import FOLDER, note

pytestmark = pytest.mark.xdist_group("training")  # the home is made there

ARMS = """
name = "variants"
preset = "cpu_smoke"
seeds = [1, 2]
rows = 40

[[arms]]
recipe = "unifireward"
arm = "none"

[[arms]]
recipe = "compeer_cer"
arm = "sft"

[settings.sft]
"trainer.total_training_steps" = 2
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "arms.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (ARMS.replace("seeds = [1, 2]", "seeds = [1, 1]"), "each may stand there once"),
        (ARMS.replace('arm = "none"', 'amr = "none"'), "Extra inputs are not permitted"),
        (ARMS.replace("rows = 40", "rows = 0"), "greater than or equal to 1"),
        (ARMS.replace("settings.sft", "settings.dpo"), "settings"),
        ('name = "x"\narms = []', "arms"),
    ],
)
def test_what_is_no_experiment_is_refused_with_the_place(tmp_path: Path, text: str, says: str):
    with pytest.raises(RequestError, match=says):
        read(written(tmp_path, text))


def test_a_file_that_is_not_there_or_no_toml_says_so(tmp_path: Path):
    with pytest.raises(UnreadableFile, match="no such file"):
        read(tmp_path / "nowhere.toml")
    with pytest.raises(UnreadableFile, match="not valid TOML"):
        read(written(tmp_path, "name = "))


@pytest.mark.parametrize("key", ['"trainer.total_training_steps"', "trainer.total_training_steps"])
def test_a_key_may_stand_with_quotes_or_without(tmp_path: Path, key: str):
    told = read(written(tmp_path, ARMS.replace('"trainer.total_training_steps"', key)))
    assert told.settings == {"sft": {"trainer.total_training_steps": 2}}


def test_an_encoder_that_is_missing_is_told_before_anything_is_trained(training_home: Path, tmp_path: Path):
    text = 'name = "e"\npreset = "cpu_smoke"\nencoder = "nope"\n[[arms]]\nrecipe = "empathy_coe"\narm = "grpo_only"\n'
    with pytest.raises(RequestError, match="there is no run nope"):
        conduct(
            training_home,
            read(written(tmp_path, text)),
            Rewards(),
            starting=pytest.fail,
            counted=pytest.fail,
            step=pytest.fail,
            ended=pytest.fail,
        )


def test_an_arm_that_no_recipe_has_is_told_before_anything_is_trained(training_home: Path, tmp_path: Path):
    told = read(written(tmp_path, ARMS.replace('arm = "sft"', 'arm = "urb"')))
    with pytest.raises(UnknownName, match="no arm of compeer_cer 'urb'"):
        conduct(
            training_home,
            told,
            Rewards(),
            starting=pytest.fail,
            counted=pytest.fail,
            step=pytest.fail,
            ended=pytest.fail,
        )


@pytest.fixture(scope="module")
def outcomes(training_home: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    path = written(tmp_path_factory.mktemp("experiment"), ARMS)
    command = "import sys; from pipelines.cli import main; sys.argv[0] = 'gongqing'; main()"
    ran = subprocess.run(
        [sys.executable, "-c", command, "experiment", path, "--json"],
        cwd=ROOT,
        env={**os.environ, "GONGQING_HOME": str(training_home)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.timeout(900)
class TestTwoArmsWithTwoSeeds:
    def test_are_told_in_the_order_of_the_file_on_equal_rows(self, outcomes: list[dict]):
        assert [(one["recipe"], one["arm"], one["rows"]) for one in outcomes] == [
            ("unifireward", "none", 40),
            ("compeer_cer", "sft", 40),
        ]
        assert {(one["seeds"], one["steps"], one["shown"]) for one in outcomes} == {(2, 2, "train/loss")}

    def test_come_with_how_far_their_seeds_lie_apart(self, outcomes: list[dict]):
        for one in outcomes:
            assert 0 < one["last"] < one["first"]
            assert one["last_deviation"] > 0
            assert one["validation"] is None

    def test_are_runs_like_all_others(self, outcomes: list[dict], training_home: Path):
        runs = training_home / FOLDER
        for seed in (1, 2):
            told = note(runs / f"variants-compeer_cer-sft-s{seed}")
            assert (told["recipe"], told["most_rows"]) == ("compeer_sft", 40)
            assert told["overrides"]["+data.seed"] == seed

    def test_are_not_trained_again(self, outcomes: list[dict], training_home: Path, tmp_path: Path):
        told = read(written(tmp_path, ARMS))
        again = conduct(
            training_home,
            told,
            Rewards(),
            starting=lambda run: None,
            counted=pytest.fail,
            step=pytest.fail,
            ended=lambda run: None,
        )
        assert [one._asdict() for one in again] == outcomes
