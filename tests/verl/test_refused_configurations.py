"""What verl or we refuse before anything is trained, in words of one line; and what of the recipes is accepted."""

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from train_env import require_train_env

from pipelines.errors import NoKey, RequestError, UnknownName
from pipelines.settings import ROOT, Rewards
from pipelines.train.launch import Run
from pipelines.train.prepare import prepare
from pipelines.train.recipe import PRESETS, as_arguments, given, overrides, recipe, recipes
from pipelines.train.runs import MODEL, NOTE, REFUSED
from pipelines.train.services import PYTHON
from pipelines.train.trainers import TRAINERS

pytestmark = [pytest.mark.xdist_group("training"), pytest.mark.timeout(300)]

GRPO, SFT = "mindchat_ecot", "empathy_sft"
REFUSALS = {
    (GRPO, "data.train_batch_size=many"): "data.train_batch_size is to be a whole number, and 'many' is none",
    (GRPO, "data.train_batch_size=1.5"): "data.train_batch_size is to be a whole number, and 1.5 is none",
    (GRPO, "data.seed=x"): "data.seed is to be a whole number, and 'x' is none",
    (GRPO, "actor_rollout_ref.actor.optim.lr=fast"): (
        "actor_rollout_ref.actor.optim.lr is to be a number, and 'fast' is none"
    ),
    (GRPO, "actor_rollout_ref.actor.use_kl_loss=maybe"): (
        "actor_rollout_ref.actor.use_kl_loss is to be true or false, and 'maybe' is none"
    ),
    (GRPO, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=x"): (
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu is to be a whole number, and 'x' is none"
    ),
    (GRPO, "actor_rollout_ref.rollout.n=0"): "actor_rollout_ref.rollout.n is 0, and has to be 1 or more",
    (GRPO, "data.max_promt_length=1"): "there is no key data.max_promt_length: did you mean data.max_prompt_length?",
    (GRPO, "custom_reward_function.path=x"): (
        "custom_reward_function.path is ignored by verl 0.9: its keys begin with reward."
    ),
    (GRPO, "algorithm.adv_estimator=grop"): "Unknown advantage estimator simply: grop",
    (GRPO, "data.train_batch_size=5"): "train_batch_size (5) must be >= actor.ppo_mini_batch_size (16)",
    (GRPO, "actor_rollout_ref.rollout.mode=sync"): "Rollout mode 'sync' has been removed",
    (SFT, "optim.lr=fast"): "optim.lr is to be a number, and 'fast' is none",
    (SFT, "+data.seed=x"): "+data.seed is to be a whole number, and 'x' is none",
    (SFT, "data.train_batch_size=63"): ("data.train_batch_size (63) is not divisible by trainer.n_gpus_per_node (8)"),
    (SFT, "engine.strategy=zz"): "strategy zz not supported",
    (SFT, "trainer.nnodes=2"): "trainer.nnodes is 2: SFT is started on this machine alone",
    (SFT, "trainer.total_epochs=0"): "trainer.total_epochs is 0, and has to be 1 or more",
    (SFT, "trainer.save_freq=0"): "trainer.save_freq is 0, and has to be 1 or more",
    (SFT, "optim.lr=-1e-5"): "optim.lr is -1e-05, and has to be 0 or more",
    (GRPO, "trainer.save_freq=-1"): "trainer.save_freq is -1, and has to be 1 or more",
    (GRPO, "trainer.val_only=true"): "trainer.val_only is true: nothing would be trained",
    (GRPO, "reward.num_workers=0"): "reward.num_workers is 0, and has to be 1 or more",
    (GRPO, "data.seed=-1"): "data.seed is -1, and has to be 0 or more",
    (GRPO, "actor_rollout_ref.rollout.temperature=-1"): (
        "actor_rollout_ref.rollout.temperature is -1, and has to be 0 or more"
    ),
}
ACCEPTED = (
    (GRPO, "actor_rollout_ref.rollout.temperature=1"),
    (GRPO, "actor_rollout_ref.actor.entropy_coeff=0.01"),
    (SFT, "trainer.save_freq=after_each_epoch"),
    (SFT, "optim.lr=0"),
    # As the difference from the paper names it: that verl's schema does not is the recipe's to know.
    (GRPO, "actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype=bf16"),
)
SCRIPT = """
import contextlib, json, sys
with contextlib.redirect_stdout(sys.stderr):
    from pipelines.train.compose import composed
    found = []
    for name, arguments in json.load(sys.stdin):
        try:
            composed(name, arguments)
            found.append(None)
        except ValueError as error:
            found.append(str(error))
print(json.dumps(found))
"""


def asked(name: str, preset: str, setting: str = "") -> tuple[str | None, list[str]]:
    told = recipe(name)
    trainer = TRAINERS[told.trainer]
    files = {trainer.train: "a.parquet", trainer.model: "model"}
    if told.trainer == "grpo":
        files[trainer.validation] = "b.parquet"
    return trainer.config, as_arguments(overrides(told, preset, files | given([setting] if setting else [])))


@pytest.fixture(scope="module")
def said() -> dict[tuple[str, str], str | None]:
    """What verl's own code, and ours on top of it, says of every case: None where it accepts it. One process."""
    require_train_env()
    cases = {(name, setting): asked(name, "gpu", setting) for name, setting in (*REFUSALS, *ACCEPTED)}
    cases |= {
        (name, preset): asked(name, preset)
        for name in recipes()
        if recipe(name).trainer != "contrastive"
        for preset in PRESETS
    }
    ran = subprocess.run(
        [PYTHON, "-c", SCRIPT],
        input=json.dumps([*cases.values()]),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return dict(zip(cases, json.loads(ran.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: f"{case[0]} {case[1]}")
def test_what_cannot_be_is_refused_in_one_line_that_names_it(said: dict[Any, str | None], case: tuple[str, str]):
    told = said[case]
    assert told is not None
    assert told.startswith(REFUSALS[case])
    assert "\n" not in told


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: f"{case[0]} {case[1]}")
def test_what_may_be_is_accepted(said: dict[Any, str | None], case: tuple[str, str]):
    assert said[case] is None


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", [name for name in recipes() if recipe(name).trainer != "contrastive"])
def test_every_recipe_is_accepted(said: dict[Any, str | None], name: str, preset: str):
    assert said[name, preset] is None


def test_a_refusal_of_a_run_is_one_line_and_the_rest_of_what_verl_said_is_in_its_log(training_home: Path):
    wrong = {"data.train_batch_size": 5}
    run = prepare(training_home, recipe(GRPO), "gpu", name="refused", provider="openai", given=wrong)
    with pytest.raises(RequestError) as error:
        run.composed()
    assert error.value.what == (
        "verl refuses the configuration: train_batch_size (5) must be >= actor.ppo_mini_batch_size (16)"
    )
    assert error.value.where == run.folder / REFUSED
    assert "Disabled critic" in (run.folder / REFUSED).read_text()
    assert not (run.folder / NOTE).exists()


# --- what is known without verl


def run_of(home: Path, of: str = GRPO, **named: Any) -> Run:
    return prepare(home, recipe(of), "gpu", settings=Rewards(), **named)


@pytest.mark.parametrize("budget", ["NaN", "Infinity", "-1"])
@pytest.mark.parametrize("provider", ["openai", "replay"])
def test_a_budget_is_an_amount_of_money(training_home: Path, budget: str, provider: str):
    with pytest.raises(RequestError, match=f"{budget} is no amount of money"):
        run_of(training_home, provider=provider, budget=Decimal(budget))


@pytest.mark.parametrize("steps", ["many", 0, -3, 1.5, True])
def test_steps_are_counted(training_home: Path, steps: object):
    key = "trainer.total_training_steps"
    for name, provider in ((GRPO, "openai"), (SFT, None)):
        with pytest.raises(RequestError, match=f"{key} is to be a whole number of 1 or more"):
            run_of(training_home, name, provider=provider, given={key: steps})


def test_a_judge_that_costs_needs_a_budget_and_a_key(training_home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DASHSCOPE_API_KEY", raising=False)
    with pytest.raises(RequestError, match="costs money, and there is no budget"):
        run_of(training_home, provider="openai").check()
    asking = run_of(training_home, provider="openai", budget=Decimal(5))
    with pytest.raises(NoKey, match="the key for qwen-plus is missing"):
        asking.check()
    monkeypatch.setenv("DASHSCOPE_API_KEY", "made-up")
    asking.check()
    assert not list(training_home.glob("*ledger*")), "nothing was opened"


def test_a_judge_has_a_profile(training_home: Path):
    run = prepare(training_home, recipe(GRPO), "gpu", provider="openai", settings=Rewards(mindchat="qwen-plsu"))
    with pytest.raises(UnknownName, match="no model profile 'qwen-plsu'"):
        run.check()
    for wrong in ("compeer", "compeer_process", "compeer_outcome"):
        rewards = Rewards(**{wrong: "nobody"})
        run = prepare(training_home, recipe("compeer_cer"), "gpu", arm="por", provider="openai", settings=rewards)
        with pytest.raises(UnknownName, match="no model profile 'nobody'"):
            run.check()


def test_a_judge_that_replays_needs_recordings(training_home: Path):
    with pytest.raises(RequestError, match="provider replay has nothing to replay"):
        run_of(training_home, provider="replay").check()


def test_a_judge_that_is_not_asked_needs_nothing(training_home: Path):
    run_of(training_home, "compeer_cer", provider="openai").check()


@pytest.mark.parametrize("written", [None, "{}", '{"threshold": null}', '{"threshold": NaN}'])
def test_an_encoder_without_a_threshold_is_none_to_ask(training_home: Path, written: str | None):
    for name in ("warm", "encoder"):
        of = {"warm": "empathy_sft", "encoder": "empathy_encoder"}[name]
        (training_home / "training" / f"no-t-{name}" / MODEL).mkdir(parents=True, exist_ok=True)
        told = json.dumps({"recipe": of, "release": {"name": "v1"}})
        (training_home / "training" / f"no-t-{name}" / NOTE).write_text(told, encoding="utf-8")
    note = training_home / "training" / "no-t-encoder" / MODEL / "encoder.json"
    run = run_of(training_home, "empathy_coe", start="no-t-warm", encoder="no-t-encoder")
    note.unlink(missing_ok=True)
    if written is not None:
        note.write_text(written, encoding="utf-8")
    with pytest.raises(RequestError, match="the encoder has no threshold T"):
        run.check()
    note.write_text('{"threshold": 0.5}', encoding="utf-8")
    run.check()


def test_options_of_the_contrastive_training_are_checked(training_home: Path):
    for option, says in (("epochs", "epochs: a whole number of 1 or more"), ("epoch", "no option .* 'epoch'")):
        run = run_of(training_home, "empathy_encoder", name="options", given={option: "many"})
        with pytest.raises(RequestError, match=says):
            run.check()
        with pytest.raises(RequestError, match=says):
            run.composed()


def dry_run(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = "import sys; from pipelines.cli import main; sys.argv[0] = 'gongqing'; main()"
    return subprocess.run(
        [sys.executable, "-c", command, "train", *words, "--dry-run"],
        cwd=ROOT,
        env={**os.environ, "GONGQING_HOME": str(home), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


def test_a_dry_run_refuses_what_the_run_would_and_leaves_nothing(training_home: Path):
    before = {path.name for path in (training_home / "training").glob("*")}
    for words, says in (
        (("empathy_coe", "--start", "nowhere"), "there is no run nowhere that has come to its end"),
        ((GRPO, "--provider", "openai", "--budget", "nan"), "NaN is no amount of money"),
        ((GRPO, "--provider", "openai"), "there is no budget"),
        (
            ("compeer_cer", "--provider", "openai", "--set", "data.train_batch_size=1000000"),
            "one batch takes 1,000,000",
        ),
        (("empathy_encoder", "--set", "epochs=none"), "epochs: a whole number of 1 or more is asked for"),
    ):
        ran = dry_run(training_home, *words)
        assert (ran.returncode, "Traceback" in ran.stderr) == (2, False), ran.stderr
        assert says in ran.stderr
    assert {path.name for path in (training_home / "training").glob("*")} == before
