"""What a run is refused for before anything is composed or trained."""

import json
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from train_env import start_command

from pipelines.errors import NoKey, RequestError, UnknownName
from pipelines.settings import Rewards
from pipelines.train.launch import Run
from pipelines.train.prepare import prepare
from pipelines.train.recipe import load_recipe
from pipelines.train.runs import MODEL, NOTE

pytestmark = [pytest.mark.xdist_group("training"), pytest.mark.timeout(300)]

GRPO, SFT = "mindchat_ecot", "empathy_sft"


def run_of(home: Path, of: str = GRPO, **named: Any) -> Run:
    return prepare(home, load_recipe(of), "gpu", **named)


def test_a_budget_is_an_amount_of_money_and_steps_are_counted(training_home: Path):
    for provider, budget in product(("openai", "replay"), ("NaN", "Infinity", "-1")):
        with pytest.raises(RequestError, match=f"{budget} is no amount of money"):
            run_of(training_home, provider=provider, budget=Decimal(budget))
    key = "trainer.total_training_steps"
    for (name, provider), steps in product(((GRPO, "openai"), (SFT, None)), ("many", 0, 1.5, True)):
        with pytest.raises(RequestError, match=f"{key} is to be a whole number of 1 or more"):
            run_of(training_home, name, provider=provider, settings={key: steps})


def test_a_judge_that_costs_needs_a_budget_and_a_key_one_that_replays_recordings_and_one_that_is_not_asked_nothing(
    training_home: Path, monkeypatch: pytest.MonkeyPatch
):
    run_of(training_home, "compeer_cer", provider="openai").check()
    with pytest.raises(RequestError, match="provider replay has nothing to replay"):
        run_of(training_home, provider="replay").check()
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
    for wrong in ("mindchat", "compeer", "compeer_process", "compeer_outcome"):
        recipe, ablation = (GRPO, "") if wrong == "mindchat" else ("compeer_cer", "por")
        run = run_of(training_home, recipe, ablation=ablation, provider="openai", rewards=Rewards(**{wrong: "nobody"}))
        with pytest.raises(UnknownName, match="no model profile 'nobody'"):
            run.check()


def test_an_encoder_without_a_threshold_is_none_to_ask(training_home: Path):
    for name, recipe in (("warm", "empathy_sft"), ("encoder", "empathy_encoder")):
        (training_home / "training" / f"no-t-{name}" / MODEL).mkdir(parents=True)
        note = json.dumps({"recipe": recipe, "release": {"name": "v1"}})
        (training_home / "training" / f"no-t-{name}" / NOTE).write_text(note, encoding="utf-8")
    note = training_home / "training" / "no-t-encoder" / MODEL / "encoder.json"
    run = run_of(training_home, "empathy_coe", start="no-t-warm", encoder="no-t-encoder")
    for written in (None, "{}", '{"threshold": null}', '{"threshold": NaN}'):
        if written is not None:
            note.write_text(written, encoding="utf-8")
        with pytest.raises(RequestError, match="the encoder has no threshold T"):
            run.check()
    note.write_text('{"threshold": 0.5}', encoding="utf-8")
    run.check()


def test_options_of_the_contrastive_training_are_checked(training_home: Path):
    run = run_of(training_home, "empathy_encoder", name="options", settings={"epochs": "many"})
    for checked in (run.check, run.compose):
        with pytest.raises(RequestError, match="epochs: Input should be a valid integer"):
            checked()


def test_a_dry_run_refuses_what_the_run_would_and_leaves_nothing(training_home: Path):
    before = {path.name for path in (training_home / "training").glob("*")}
    for words, says in (
        ((GRPO,), "there is no budget"),
        (("compeer_cer", "--set", "data.train_batch_size=1000000"), "one batch takes 1,000,000"),
    ):
        options = ("--provider", "openai", "--dry-run")
        process = start_command(training_home, "train", *words, *options, COLUMNS="200")
        _, stderr = process.communicate()
        assert (process.returncode, "Traceback" in stderr) == (2, False), stderr
        assert says in stderr
    assert {path.name for path in (training_home / "training").glob("*")} == before
