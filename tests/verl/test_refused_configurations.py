"""What verl or we refuse before anything is trained, in words of one line; and what of the recipes is accepted."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from train_env import script_result, start_command

from pipelines.errors import NoKey, RequestError, UnknownName
from pipelines.settings import Rewards
from pipelines.train.launch import Run
from pipelines.train.prepare import prepare
from pipelines.train.recipe import PRESETS, as_arguments, build_overrides, load_recipe, parse_settings, recipe_names
from pipelines.train.runs import MODEL, NOTE, REFUSED
from pipelines.train.trainers import TRAINERS

pytestmark = [pytest.mark.xdist_group("training"), pytest.mark.timeout(300)]

GRPO, SFT = "mindchat_ecot", "empathy_sft"
REFUSALS = {
    (GRPO, "data.train_batch_size=many"): "data.train_batch_size is to be a whole number, and 'many' is not",
    (GRPO, "data.seed=x"): "data.seed is to be a whole number, and 'x' is not",
    (GRPO, "actor_rollout_ref.actor.optim.lr=fast"): (
        "actor_rollout_ref.actor.optim.lr is to be a number, and 'fast' is not"
    ),
    (GRPO, "actor_rollout_ref.actor.use_kl_loss=maybe"): (
        "actor_rollout_ref.actor.use_kl_loss is to be true or false, and 'maybe' is not"
    ),
    (GRPO, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=x"): (
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu is to be a whole number, and 'x' is not"
    ),
    (GRPO, "actor_rollout_ref.rollout.n=0"): "actor_rollout_ref.rollout.n is 0, and has to be 1 or more",
    (GRPO, "data.max_promt_length=1"): "there is no key data.max_promt_length: did you mean data.max_prompt_length?",
    (GRPO, "custom_reward_function.path=x"): (
        "custom_reward_function.path is ignored by verl 0.9: its keys begin with reward."
    ),
    (GRPO, "algorithm.adv_estimator=grop"): "Unknown advantage estimator simply: grop",
    (GRPO, "data.train_batch_size=5"): "train_batch_size (5) must be >= actor.ppo_mini_batch_size (16)",
    (GRPO, "actor_rollout_ref.rollout.mode=sync"): "Rollout mode 'sync' has been removed",
    (SFT, "optim.lr=fast"): "optim.lr is to be a number, and 'fast' is not",
    (SFT, "+data.seed=x"): "+data.seed is to be a whole number, and 'x' is not",
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
    from pipelines.train.compose import compose_config
    messages = []
    for name, arguments in json.load(sys.stdin):
        try:
            compose_config(name, arguments)
            messages.append(None)
        except ValueError as error:
            messages.append(str(error))
print(json.dumps(messages))
"""


def arguments_of(name: str, preset: str, setting: str = "") -> tuple[str | None, list[str]]:
    recipe = load_recipe(name)
    trainer = TRAINERS[recipe.trainer]
    settings = {trainer.train: "a.parquet", trainer.model: "model"}
    if recipe.trainer == "grpo":
        settings[trainer.validation] = "b.parquet"
    settings |= parse_settings([setting] if setting else [])
    return trainer.config, as_arguments(build_overrides(recipe, preset, settings))


@pytest.fixture(scope="module")
def messages() -> dict[tuple[str, str], str | None]:
    """The message of verl's own code, and of ours on top of it, for every case: None where it is accepted."""
    cases = {(name, setting): arguments_of(name, "gpu", setting) for name, setting in (*REFUSALS, *ACCEPTED)}
    names = [name for name in recipe_names() if load_recipe(name).trainer != "contrastive"]
    cases |= {(name, preset): arguments_of(name, preset) for name in names for preset in PRESETS}
    return dict(zip(cases, script_result(SCRIPT, stdin=[*cases.values()]), strict=True))


def test_a_wrong_setting_is_refused_in_one_line_that_names_it(messages: dict[Any, str | None]):
    wrong = {case: messages[case] for case, start in REFUSALS.items() if not (messages[case] or "").startswith(start)}
    assert not wrong
    assert not [message for message in messages.values() if message and "\n" in message]


def test_other_settings_and_every_recipe_are_accepted(messages: dict[Any, str | None]):
    accepted = messages.keys() - REFUSALS.keys()
    assert len(accepted) > len(ACCEPTED) + 10
    assert {case: messages[case] for case in accepted if messages[case]} == {}


def test_a_refusal_of_a_run_is_one_line_and_the_rest_of_verls_output_is_in_its_log(training_home: Path):
    wrong = {"data.train_batch_size": 5}
    run = prepare(training_home, load_recipe(GRPO), "gpu", name="refused", provider="openai", settings=wrong)
    with pytest.raises(RequestError) as error:
        run.compose()
    assert error.value.what == (
        "verl refuses the configuration: train_batch_size (5) must be >= actor.ppo_mini_batch_size (16)"
    )
    assert error.value.where == run.folder / REFUSED
    assert "Disabled critic" in (run.folder / REFUSED).read_text()
    assert not (run.folder / NOTE).exists()


# --- what is known without verl


def run_of(home: Path, of: str = GRPO, **named: Any) -> Run:
    return prepare(home, load_recipe(of), "gpu", **named)


@pytest.mark.parametrize("budget", ["NaN", "Infinity", "-1"])
@pytest.mark.parametrize("provider", ["openai", "replay"])
def test_a_budget_is_an_amount_of_money(training_home: Path, budget: str, provider: str):
    with pytest.raises(RequestError, match=f"{budget} is no amount of money"):
        run_of(training_home, provider=provider, budget=Decimal(budget))


@pytest.mark.parametrize("steps", ["many", 0, 1.5, True])
def test_steps_are_counted(training_home: Path, steps: object):
    key = "trainer.total_training_steps"
    for name, provider in ((GRPO, "openai"), (SFT, None)):
        with pytest.raises(RequestError, match=f"{key} is to be a whole number of 1 or more"):
            run_of(training_home, name, provider=provider, settings={key: steps})


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
    run = prepare(training_home, load_recipe(GRPO), "gpu", provider="openai", rewards=Rewards(mindchat="qwen-plsu"))
    with pytest.raises(UnknownName, match="no model profile 'qwen-plsu'"):
        run.check()
    for wrong in ("compeer", "compeer_process", "compeer_outcome"):
        rewards = Rewards(**{wrong: "nobody"})
        run = prepare(
            training_home, load_recipe("compeer_cer"), "gpu", ablation="por", provider="openai", rewards=rewards
        )
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
    for option, says in (("epochs", "epochs: Input should be a valid integer"), ("epoch", "no option .* 'epoch'")):
        run = run_of(training_home, "empathy_encoder", name="options", settings={option: "many"})
        with pytest.raises(RequestError, match=says):
            run.check()
        with pytest.raises(RequestError, match=says):
            run.compose()


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
        (("empathy_encoder", "--set", "epochs=none"), "epochs: Input should be a valid integer"),
    ):
        process = start_command(training_home, "train", *words, "--dry-run", COLUMNS="200")
        _, stderr = process.communicate()
        assert (process.returncode, "Traceback" in stderr) == (2, False), stderr
        assert says in stderr
    assert {path.name for path in (training_home / "training").glob("*")} == before
