"""C's recipe in verl itself, on a CPU: the rewards that reach the advantages, until one of verl's workers is killed."""

import os
import signal
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from train_env import commands, read_lines, settings_options, start_command, warm
from web_ui import tree

from pipelines.rewards.compeer import parts
from pipelines.rewards.redundancy import reweight
from pipelines.store.releases import Releases
from pipelines.train.runs import ROLLOUTS, SCORED, read_metrics

NAME, STEPS, PROMPTS, GROUP = "urp", 5, 2, 4
SET = {
    **{"trainer.total_training_steps": 1000, "trainer.save_freq": 1000, "trainer.test_freq": -1},
    **{"trainer.val_before_train": False, "data.train_batch_size": PROMPTS, "data.max_response_length": 96},
    "actor_rollout_ref.actor.ppo_mini_batch_size": PROMPTS,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 8,
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": 8,
    "actor_rollout_ref.actor.optim.lr": 1e-5,  # what a short warm start has taught is not to be lost again
    **{"actor_rollout_ref.rollout.temperature": 0.7, "actor_rollout_ref.rollout.n": GROUP, "reward.num_workers": 2},
}

pytestmark = [pytest.mark.timeout(1200), pytest.mark.xdist_group("training")]


@pytest.fixture(scope="module")
def run(training_home: Path) -> Path:
    """The folder of the run, with what it starts from: a short warm start is enough."""
    return warm(training_home, training_home / "training" / NAME, "grpo_cer", "--form=cer", "--epochs=4", "--batch=4")


@pytest.fixture(scope="module")
def stderr(run: Path) -> str:
    """The error of the command when a worker of its run is killed behind `STEPS` steps: the one that draws the outputs,
    for which verl itself would wait without end.
    """
    options = ("--ablation=urp", "--preset=cpu_smoke", f"--name={NAME}", *settings_options(SET))
    process = start_command(run.parents[1], "train", "compeer_cer", *options)
    while max(read_metrics(run), default=0) < STEPS and process.poll() is None:
        time.sleep(0.1)
    names = commands()
    [pid] = [pid for pid in tree(process.pid) if names.get(pid, "").startswith("ray::AgentLoopWorkerTQ")]
    os.kill(pid, signal.SIGKILL)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 1, stderr
    return " ".join(stderr.split())


@pytest.fixture(scope="module")
def steps(run: Path, stderr: str) -> dict[int, list[dict[str, Any]]]:
    """The outputs of each step, as verl logged them, each with what our manager wrote of it (`scored`)."""
    scored = {f"{line['uid']}_{line['session']}_0": line for line in read_lines(run / SCORED)}
    return {
        step: [{**row, "scored": scored[row["uid"]]} for row in read_lines(run / ROLLOUTS / f"{step}.jsonl")]
        for step in range(1, STEPS + 1)
    }


def test_a_worker_that_is_gone_stops_the_run(stderr: str):
    assert "training ended with code 1" in stderr
    assert "it goes on from the last checkpoint" in stderr
    assert "agent_loop_worker_0" in stderr or "AgentLoopWorkerTQ" in stderr  # who notices it first


def test_every_output_has_its_line_whichever_worker_saw_it(run: Path, steps: dict[int, list[dict[str, Any]]]):
    assert len(list((run / SCORED).glob("*.jsonl"))) >= 2, "two workers"
    assert [len(rows) for rows in steps.values()] == [PROMPTS * GROUP] * STEPS
    for row in (row for rows in steps.values() for row in rows):
        assert (row["scored"]["output"], row["scored"]["split"]) == (row["output"], "train")


def test_the_reward_that_reached_the_advantage_is_that_of_the_equations(
    steps: dict[int, list[dict[str, Any]]], run: Path
):
    """C eq. 5–7 on the texts that verl logged; only the judge's terms and the lengths in tokens are taken on trust."""
    released = Releases(run.parents[1]).folder("v1") / "grpo_cer" / "train-00000-of-00001.parquet"
    rows = {row["row_id"]: row for row in pq.read_table(released).to_pylist()}
    weighed = 0
    for step, outputs in steps.items():
        groups = defaultdict(list)
        for row in outputs:
            groups[row["uid"].rpartition("_")[0].rpartition("_")[0]].append(row)
        for group in groups.values():
            assert len(group) == GROUP
            terms = [row["scored"]["terms"] for row in group]
            r = [sum(one[name] for name in ("step1", "step2", "step3", "response", "format")) for one in terms]
            responses = [parts(row["output"]).response or "" for row in group]
            lengths = dict(zip(responses, (one["length"] for one in terms), strict=True))
            dialogue = rows[group[0]["scored"]["row_id"]]["extra_info"]["dialogue"]
            history = [turn["text"] for turn in dialogue]
            expected = reweight(r, responses, history, length=lengths.__getitem__)
            assert [row["score"] for row in group] == pytest.approx(expected.tolist(), abs=1e-5)
            weighed += expected.tolist() != pytest.approx(r)
        mean = sum(row["score"] for row in outputs) / len(outputs)
        assert read_metrics(run)[step]["critic/score/mean"] == pytest.approx(mean, abs=1e-5)
    assert weighed >= 3, "else little was shown"
