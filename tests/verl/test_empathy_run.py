"""E's three runs, for real: a warm start, an encoder, and a policy that starts from the one and asks the other."""

import json
import os
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.rewards.contrastive import MOST_ECHOED, echoed
from pipelines.rewards.empathy import question
from pipelines.rewards.format import coe
from pipelines.rewards.sections import section
from pipelines.settings import ROOT
from pipelines.store import Store
from pipelines.store.releases import Releases
from pipelines.train.launch import Run
from pipelines.train.outcome import tell
from pipelines.train.prepare import prepare
from pipelines.train.recipe import recipe
from pipelines.train.runs import MODEL, SCORED
from pipelines.train.services import PYTHON
from schemas.reasoning import COE_TAGS

pytestmark = [pytest.mark.timeout(1500), pytest.mark.xdist_group("training")]

GENTLY = {"trainer.total_training_steps": 2, "trainer.save_freq": 2}
# A rate at which the little that the start knows is still there at the end.
POLICY = GENTLY | {
    "trainer.test_freq": -1,
    "trainer.val_before_train": False,
    "data.train_batch_size": 4,
    "data.max_response_length": 64,
    "actor_rollout_ref.actor.ppo_mini_batch_size": 4,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 32,
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": 32,
    "actor_rollout_ref.actor.optim.lr": 1e-5,
    "actor_rollout_ref.rollout.temperature": 0.7,
}


def run_of(home: Path, name: str, given: dict, **named: str) -> Run:
    return prepare(home, recipe(name), "cpu_smoke", name=f"e-{name}", given=given, **named)


@pytest.fixture(scope="module")
def trained(training_home: Path) -> Run:
    """The policy, at its end."""
    warm = run_of(training_home, "empathy_sft", GENTLY | {"optim.lr": 1e-5})
    rows = [str(path) for path in warm.files["train"]]
    # A start that writes E's format now and then: with the usual one, which has learnt nothing, nothing is asked.
    made = subprocess.run(
        [PYTHON, "-m", "pipelines.train.tiny", warm.folder / "start", *rows, "--form=coe", "--epochs=1", "--batch=4"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    for run in (warm, run_of(training_home, "empathy_encoder", {"epochs": 1})):
        run.train(lambda step, metrics: None)
    policy = run_of(training_home, "empathy_coe", POLICY, start=warm.folder.name, encoder="e-empathy_encoder")
    policy.train(lambda step, metrics: None)
    return policy


def scored(run: Run) -> list[dict]:
    lines = [line for path in (run.folder / SCORED).glob("*.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def test_the_policy_starts_from_the_warm_start(trained: Run, training_home: Path):
    start = training_home / "training" / "e-empathy_sft" / MODEL
    assert trained.overrides["actor_rollout_ref.model.path"] == str(start)
    assert (start / "config.json").exists()


def test_its_reward_is_the_form_and_what_the_encoder_says_of_the_answer(trained: Run, training_home: Path):
    encoder = json.loads((training_home / "training" / "e-empathy_encoder" / MODEL / "encoder.json").read_text())
    rows = pq.read_table(Releases(training_home).folder("v1") / "grpo_coe").to_pylist()
    told = {row["row_id"]: row["extra_info"] for row in rows}
    found = scored(trained)
    assert len(found) == 2 * 4 * 8
    for row in found:
        terms, answer = row["terms"], section(row["output"], "answer", COE_TAGS)
        assert terms["r_format"] == coe(row["output"])
        assert terms["score"] == terms["r_format"] + terms["r_answer"]
        if answer is None:
            assert terms["similarity"] == terms["r_answer"] == 0
        else:
            assert terms["echo"] == pytest.approx(echoed(question(told[row["row_id"]]), answer))
            fits = terms["similarity"] > encoder["threshold"] and terms["echo"] <= MOST_ECHOED
            assert terms["r_answer"] == fits
    assert any(row["terms"]["similarity"] for row in found), "somebody asked the encoder"


def test_verl_was_trained_with_this_reward(trained: Run):
    means = [metrics["critic/score/mean"] for _, metrics in sorted(trained.metrics().items())]
    every = sum(row["terms"]["score"] for row in scored(trained))
    assert sum(means) * 32 == pytest.approx(every, abs=1e-3)


def test_what_it_wrote_is_a_table_in_the_end(trained: Run, training_home: Path):
    outcome = tell(Store(training_home / "data"), trained.folder)
    assert outcome.rollouts is not None
    assert (outcome.rollouts.rows, outcome.rollouts.dropped) == (64, 0)
    assert outcome.page.read_text(encoding="utf-8").count("<img") >= 3
