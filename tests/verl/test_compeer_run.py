"""C's whole chain, for real: UnifiReward on people's labels, SFT on what they found right, and GRPO from that warm
start with that judge, on dialogues and their rewritings by personas. One of verl's workers is killed, and the command
is given again.
"""

import os
import shutil
import signal
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq
import pytest
from judge_process import profiles
from train_env import QUIET, Trained, commands, read_lines, settings_options, start_command, trained
from web_ui import tree

from pipelines.rewards.compeer import parts
from pipelines.rewards.redundancy import reweight
from pipelines.settings import ROOT
from pipelines.store.releases import Releases
from pipelines.train.runs import MODEL, ROLLOUTS, SCORED, read_metrics, read_note
from pipelines.train.services import PYTHON
from pipelines.train.trainers import last_step

NAME, WARM, STEPS, SAVED, PROMPTS, GROUP = "urp", "cer", 4, 2, 4, 8
SET = {
    **{"trainer.total_training_steps": STEPS, "trainer.save_freq": SAVED, "trainer.test_freq": -1},
    **{"trainer.val_before_train": False, "data.train_batch_size": PROMPTS, "reward.num_workers": 2},
    "actor_rollout_ref.actor.optim.lr": 3e-4,  # for half as many outputs a step, and a judge that knows little
    "actor_rollout_ref.actor.ppo_mini_batch_size": PROMPTS,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": PROMPTS * GROUP,
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": PROMPTS * GROUP,
}

PARTS = ("step1", "step2", "step3", "response")

pytestmark = [pytest.mark.timeout(1500), pytest.mark.xdist_group("training")]


@pytest.fixture(scope="module")
def judge(experiment: Trained) -> Iterator[str]:
    """The address of the UnifiReward that the experiment has trained."""
    command = [
        str(PYTHON),
        str(ROOT / "tests" / "doubles" / "served_model.py"),
        str(experiment.plan[0].run.folder / MODEL),
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**os.environ, **QUIET}, **pipes) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


@pytest.fixture(scope="module")
def home(training_home: Path, judge: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose settings know the judge, with the warm start."""
    home = tmp_path_factory.mktemp("compeer") / "home"
    shutil.copytree(training_home, home, ignore=shutil.ignore_patterns("training"))
    profiles(home, judge, names=("unifireward",), profile='key_variable = ""\n')
    trained(home, "compeer_sft", WARM)
    return home


@pytest.fixture(scope="module")
def run(home: Path) -> Path:
    """The folder of the run."""
    return home / "training" / NAME


def start(home: Path) -> "subprocess.Popen[str]":
    options = ("--ablation=urp", "--preset=cpu_smoke", f"--name={NAME}", f"--start={WARM}")
    asked = ("--provider=openai", "--budget=50")
    return start_command(home, "train", "compeer_cer", *options, *asked, *settings_options(SET))


@pytest.fixture(scope="module")
def stderr(run: Path, home: Path) -> str:
    """The error of the command when a worker of its run is killed behind a checkpoint: the one that draws the outputs,
    for which verl itself would wait without end.
    """
    process = start(home)
    while last_step(run) < SAVED and process.poll() is None:
        time.sleep(0.1)
    names = commands()
    [pid] = [pid for pid in tree(process.pid) if names.get(pid, "").startswith("ray::AgentLoopWorkerTQ")]
    os.kill(pid, signal.SIGKILL)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 1, stderr
    return " ".join(stderr.split())


@pytest.fixture(scope="module")
def ended(home: Path, stderr: str) -> str:
    """The output of the same command, given again."""
    stdout, stderr = (process := start(home)).communicate(timeout=1200)
    assert process.returncode == 0, stderr
    return stdout


@pytest.fixture(scope="module")
def steps(run: Path, ended: str) -> dict[int, list[dict[str, Any]]]:
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


def test_it_is_made_of_the_models_before_it_and_of_rewritings_and_comes_to_its_end(
    run: Path, ended: str, steps: dict[int, list[dict[str, Any]]]
):
    note = read_note(run)
    assert note["overrides"]["actor_rollout_ref.model.path"] == str(run.parent / WARM / MODEL)
    assert (note["judge"]["provider"], note["judge"]["model"]) == ("openai", "unifireward")
    assert sorted(step for step in read_metrics(run) if step) == list(range(1, STEPS + 1))
    assert f"the model: {run / MODEL}" in ended
    rows = pq.read_table(run / "data" / "train.parquet", columns=["row_id", "extra_info"]).to_pylist()
    variant = {row["row_id"]: row["extra_info"]["variant"] for row in rows}
    asked = Counter(variant[row["scored"]["row_id"]] for outputs in steps.values() for row in outputs)
    assert asked.keys() == {"none", "P"}


def test_a_step_is_right_where_the_judge_that_was_trained_says_so_and_wrong_where_it_is_missing(
    steps: dict[int, list[dict[str, Any]]],
):
    scored = [row["scored"] for outputs in steps.values() for row in outputs]
    verdicts = 0
    for one in scored:
        assert one["terms"]["judge_ok"] == 1
        right = {
            f"step{step}": f"第{number}步正确。" in one["words"] or f"Step {step} is right." in one["words"]
            for step, number in enumerate("一二三", 1)
        }
        assert {name: one["terms"][name] for name in right} == {
            name: 1.0 if yes else -1.0 for name, yes in right.items()
        }
        verdicts += len(one["words"].splitlines())
    assert verdicts > len(scored) / 4


def test_every_output_has_its_line_whichever_worker_saw_it(run: Path, steps: dict[int, list[dict[str, Any]]]):
    assert len(list((run / SCORED).glob("*.jsonl"))) >= 2, "two workers"
    assert [len(rows) for rows in steps.values()] == [PROMPTS * GROUP] * STEPS
    for row in (row for rows in steps.values() for row in rows):
        assert (row["scored"]["output"], row["scored"]["split"]) == (row["output"], "train")


def summed(terms: list[dict[str, float]], there: list[dict[str, bool]]) -> list[float]:
    """r of the outputs of a group: their five terms. What the judge has failed to judge counts as the mean of its
    verdicts in the group.
    """
    verdicts: dict[str, list[float]] = {name: [] for name in PARTS}
    for one, has in zip(terms, there, strict=True):
        for name in PARTS if one["judge_ok"] else ():
            verdicts[name] += [one[name]] if has[name] else []
    mean = {name: fmean(values) if values else 0.0 for name, values in verdicts.items()}
    return [
        one["format"] + sum(one[name] if one["judge_ok"] or not has[name] else mean[name] for name in PARTS)
        for one, has in zip(terms, there, strict=True)
    ]


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
            written = [parts(row["output"]) for row in group]
            r = summed(terms, [one.judged for one in written])
            responses = [one.response or "" for one in written]
            lengths = dict(zip(responses, (one["length"] for one in terms), strict=True))
            dialogue = rows[group[0]["scored"]["row_id"]]["extra_info"]["dialogue"]
            history = [turn["text"] for turn in dialogue]
            expected = reweight(r, responses, history, length=lengths.__getitem__)
            assert [row["score"] for row in group] == pytest.approx(expected.tolist(), abs=1e-5)
            weighed += expected.tolist() != pytest.approx(r)
        score = fmean(row["score"] for row in outputs)
        assert read_metrics(run)[step]["critic/score/mean"] == pytest.approx(score, abs=1e-5)
    assert weighed, "else nothing was shown: how many groups have answers alike is the chance of the run"
