"""Experiments: arms on equal rows and seeds, one table."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.errors import RequestError, UnknownName, UnreadableFile
from pipelines.settings import ROOT, Rewards
from pipelines.train.experiment import Planned, conduct, make_ready, plan, read
from pipelines.train.runs import MODEL, NOTE, configuration, note

pytestmark = pytest.mark.xdist_group("training")  # the home is made there

ARMS = """
name = "variants"
preset = "cpu_smoke"
seeds = [1, 2]
rows = 20

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
        (ARMS.replace("rows = 20", "rows = 0"), "greater than or equal to 1"),
        (ARMS.replace("settings.sft", "settings.dpo"), "settings"),
        ('name = "x"\narms = []', "arms"),
        (ARMS.replace('[settings.sft]\n"trainer.total_training_steps" = 2', "[settings]\nsft = 3"), "settings.sft: "),
        ("settings = 3\n" + ARMS.replace('[settings.sft]\n"trainer.total_training_steps" = 2', ""), "settings: "),
        (ARMS + '"optim.lr" = nan\n', "settings: .*optim.lr: nan is no number to train with"),
        (ARMS + "optim.lr = -inf\n", "optim.lr: -inf is no number to train with"),
        (ARMS + '"optim.betas" = [0.9, nan]\n', "optim.betas: .* is no number to train with"),
        (ARMS + '"optim.lr" = 2026-11-22\n', "optim.lr: 2026-11-22 is no value of a setting"),
        (ARMS + '"optim.lr" = "nan"\n', "optim.lr: nan is no number to train with"),
        (ARMS.replace("seeds = [1, 2]", "seeds = [true]"), "seeds.0: "),
        (ARMS.replace("rows = 20", "rows = true"), "rows: "),
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


def planned(home: Path, folder: Path, text: str) -> list[Planned]:
    return plan(home, read(written(folder, text)), Rewards())


def test_an_encoder_that_is_missing_is_told_before_anything_is_trained(training_home: Path, tmp_path: Path):
    text = 'name = "e"\npreset = "cpu_smoke"\nencoder = "nope"\n[[arms]]\nrecipe = "empathy_coe"\narm = "grpo_only"\n'
    with pytest.raises(RequestError, match="there is no run nope"):
        planned(training_home, tmp_path, text)


def test_an_arm_that_no_recipe_has_is_told_before_anything_is_trained(training_home: Path, tmp_path: Path):
    with pytest.raises(UnknownName, match="no arm of compeer_cer 'urb'"):
        planned(training_home, tmp_path, ARMS.replace('arm = "sft"', 'arm = "urb"'))


def test_arms_on_different_numbers_of_rows_are_told_before_anything_is_trained(training_home: Path, tmp_path: Path):
    for rows in ("rows = 100000", ""):
        with pytest.raises(
            RequestError, match="would train on different numbers of rows: unifireward none on "
        ) as error:
            planned(training_home, tmp_path, ARMS.replace("rows = 20", rows))
        [least] = re.findall(r"rows = (\d+), which all of them have", error.value.hint)
        told = planned(training_home, tmp_path, ARMS.replace("rows = 20", f"rows = {least}"))
        assert {one.run.rows for one in told} == {int(least)}


def test_arms_on_variants_that_nobody_made_are_told_before_anything_is_trained(persona_home: Path, tmp_path: Path):
    arms = "".join(f'[[arms]]\nrecipe = "unifireward"\narm = "{arm}"\n' for arm in ("none", "p", "d"))
    text = f'name = "ablation"\npreset = "cpu_smoke"\nrows = 20\n{arms}'
    with pytest.raises(RequestError, match="rm_unified has no rows of the variants D: with copies") as error:
        planned(persona_home, tmp_path, text)
    assert "add D to variants under [rewrite]" in error.value.hint
    assert not (persona_home / "training").exists() or not [*(persona_home / "training").glob("ablation*")]


def test_a_seed_reaches_everything_that_draws(training_home: Path, tmp_path: Path):
    arms = ("compeer_cer", "ur"), ("compeer_cer", "sft"), ("empathy_encoder", "")
    text = 'name = "s"\npreset = "cpu_smoke"\nseeds = [7]\nrows = 20\nprovider = "openai"\n' + "".join(
        f'[[arms]]\nrecipe = "{recipe}"\narm = "{arm}"\n' for recipe, arm in arms
    )
    found = [one.run for one in planned(training_home, tmp_path, text)]
    assert [run.recipe.trainer for run in found] == ["grpo", "sft", "contrastive"]
    for run in found:
        assert {run.overrides[key] for key in run.trainer.seeds} == {7}
        assert [key for key, value in run.overrides.items() if key.endswith("seed") and value != 7] == []


@pytest.mark.parametrize("key", ["+data.seed", "data.seed", "trainer.seed"])
def test_a_seed_is_the_experiments_own_to_set(training_home: Path, tmp_path: Path, key: str):
    with pytest.raises(RequestError, match="is the experiment's own to set"):
        planned(training_home, tmp_path, ARMS + f'"{key}" = 3\n')


def an_encoder(home: Path) -> None:
    """`planned-encoder`, as if it had come to its end."""
    encoder = home / "training" / "planned-encoder"
    (encoder / MODEL).mkdir(parents=True, exist_ok=True)
    asked = {"recipe": "empathy_encoder", "release": {"name": "v1"}}
    (encoder / NOTE).write_text(json.dumps(asked), encoding="utf-8")
    (encoder / MODEL / "encoder.json").write_text('{"threshold": 0.5}', encoding="utf-8")


def test_a_policy_is_planned_before_what_it_starts_from_is_there(training_home: Path, tmp_path: Path):
    an_encoder(training_home)
    text = 'name = "w"\npreset = "cpu_smoke"\nseeds = [1, 2]\nrows = 12\nencoder = "planned-encoder"\n'
    found = planned(training_home, tmp_path, text + "".join(
        f'[[arms]]\nrecipe = "empathy_coe"\narm = "{arm}"\n' for arm in ("", "sft_only", "grpo_only", "no_coe")
    ))  # fmt: skip
    assert [[run.folder.name for run in one.runs] for one in found[::2]] == [
        ["w-empathy_sft-s1", "w-empathy_coe-s1"],
        ["w-empathy_coe-sft_only-s1"],
        ["w-empathy_coe-grpo_only-s1"],
        ["w-empathy_sft-no_coe-s1", "w-empathy_coe-no_coe-s1"],
    ]
    for one in found:
        if one.start is not None:
            assert one.run.overrides["actor_rollout_ref.model.path"] == str(one.start.folder / MODEL)
            assert one.start.overrides["engine.seed"] == one.run.overrides["data.seed"]


@pytest.mark.parametrize(("option", "value"), [("provider", '"openai"'), ("budget", "3"), ("encoder", '"x"')])
def test_what_no_arm_has_a_use_for_is_refused(training_home: Path, tmp_path: Path, option: str, value: str):
    with pytest.raises(RequestError, match=f"no arm has a use for {option}"):
        planned(training_home, tmp_path, ARMS.replace("rows = 20", f"rows = 20\n{option} = {value}"))


@pytest.mark.parametrize("trainer", ["grpo", "contrastive"])
def test_settings_of_a_trainer_by_whom_no_arm_is_trained_are_refused(training_home: Path, tmp_path: Path, trainer: str):
    with pytest.raises(RequestError, match=f"no arm is trained by {trainer}") as error:
        planned(training_home, tmp_path, ARMS + f"[settings.{trainer}]\nseries = 3\n")
    assert error.value.where == f"settings.{trainer}"


def test_settings_of_what_trains_a_warm_start_alone_have_an_effect(training_home: Path, tmp_path: Path):
    text = (
        'name = "w2"\npreset = "cpu_smoke"\nrows = 12\nencoder = "planned-encoder"\n[[arms]]\nrecipe = "empathy_coe"\n'
    )
    an_encoder(training_home)
    [found] = planned(training_home, tmp_path, text + '[settings.sft]\n"optim.lr" = 1e-5\n')
    assert found.start is not None
    assert found.start.overrides["optim.lr"] == 1e-5


@pytest.mark.parametrize("settings", [
    '[settings.sft]\n"trainer.total_training_steps" = 0\n',
    '[settings.sft]\n"trainer.default_local_dir" = "x"\n',
])  # fmt: skip
def test_a_refusal_names_the_file_as_a_place_where_settings_are_given(
    training_home: Path, tmp_path: Path, settings: str
):
    with pytest.raises(RequestError) as error:
        planned(training_home, tmp_path, ARMS[: ARMS.index("[settings")] + settings)
    assert error.value.where == "--set, or [settings] of an experiment"


@pytest.mark.timeout(300)
def test_an_arm_that_cannot_be_composed_is_told_before_another_is_trained(training_home: Path, tmp_path: Path):
    text = ARMS.replace("variants", "uncomposed").replace('arm = "sft"', 'arm = "ur"').replace("seeds = [1, 2]", "")
    found = planned(training_home, tmp_path, text + '[settings.grpo]\n"data.train_batch_size" = 3\n')
    looked: list[str] = []
    with pytest.raises(RequestError, match="verl refuses the configuration: train_batch_size \\(3\\) must be") as error:
        make_ready(found, lambda run: looked.append(run.folder.name))
    assert "[settings] of an experiment" in error.value.hint
    assert looked == [one.run.folder.name for one in found]
    assert not [one for one in found if (one.run.folder / NOTE).exists()]


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
            ("unifireward", "none", 20),
            ("compeer_cer", "sft", 20),
        ]
        assert {(one["seeds"], one["steps"], one["shown"]) for one in outcomes} == {(2, 2, "train/loss")}

    def test_say_what_they_measure(self, outcomes: list[dict]):
        for one, trained in zip(outcomes, ("unifireward", "compeer_sft"), strict=True):
            assert (one["figure"], one["validation_figure"], one["asked_rows"]) == ("loss", None, 20)
            assert one["measured"] == (
                f"loss of {trained} on what it imitates; it writes no outputs, so it has no reward"
            )

    def test_come_with_how_far_their_seeds_lie_apart(self, outcomes: list[dict]):
        assert outcomes
        for one in outcomes:
            assert 0 < one["last"] < one["first"]
            assert one["last_deviation"] > 0
            assert one["validation"] is None

    def test_are_runs_like_all_others(self, outcomes: list[dict], training_home: Path):
        runs = training_home / "training"
        for seed in (1, 2):
            told = note(runs / f"variants-compeer_cer-sft-s{seed}")
            assert (told["recipe"], told["most_rows"]) == ("compeer_sft", 20)
            assert told["overrides"]["+data.seed"] == seed
            composed = configuration(runs / f"variants-compeer_cer-sft-s{seed}")
            assert (composed["data"]["seed"], composed["trainer"]["seed"], composed["engine"]["seed"]) == (seed,) * 3

    def test_are_not_trained_again(self, outcomes: list[dict], training_home: Path, tmp_path: Path):
        told = read(written(tmp_path, ARMS))
        found = plan(training_home, told, Rewards())
        make_ready(found, lambda run: None)
        again = conduct(
            told,
            found,
            starting=lambda run: None,
            counted=pytest.fail,
            step=pytest.fail,
            ended=lambda run: None,
        )
        assert [one._asdict() for one in again] == outcomes
