"""M's recipe in verl itself, on a CPU, and a judge that fails: the run stops, and goes on to its end.

The judge is the real one, provider `openai`, and asks a host of models on this machine. By the same command the run is
started three times: its judge's host goes away, replies NaN, and is sound again.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from train_env import released, warm
from vendor_profile import PROFILE

from pipelines.llm.ledger.ledger import Ledger
from pipelines.settings import ROOT
from pipelines.train.runs import ROLLOUTS, SCORED, metrics
from pipelines.train.trainers import last_step, last_weights
from tests.doubles.vendor import Vendor

NAME, STEPS, SOUND = "judged", 3, 1
SET = {
    "trainer.total_training_steps": STEPS,
    "trainer.save_freq": 1,
    "trainer.max_actor_ckpt_to_keep": 1,
    "trainer.test_freq": -1,
    "trainer.val_before_train": "false",
    "actor_rollout_ref.actor.optim.lr": 1e-5,  # what a short warm start has taught is not to be lost again
}
SETTINGS = """
[llm]
profiles = "profiles.toml"

[rewards]
judge_timeout = 4
judge_attempts = 2
"""
pytestmark = [pytest.mark.timeout(1200), pytest.mark.xdist_group("training")]


@pytest.fixture(scope="module")
def run(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the run, in a home with a release, and what it starts from: warm enough for the judge to be asked
    of a third of the outputs and more, since a handful of failures stops nothing.
    """
    home = released(sample_home, tmp_path_factory.mktemp("judged"))
    (home / "gongqing.toml").write_text(SETTINGS, encoding="utf-8")
    return warm(home, home / "training" / NAME, "grpo_ecot", "--form=ecot", "--epochs=8", "--batch=8")


class Stop(NamedTuple):
    """What the command said of a run that it ended, the last checkpoint, with when its weights were written, and what
    had been spent of the one budget that is open.
    """

    said: str
    checkpoint: int
    written: float
    spent: int


def command(run: Path, vendor: Vendor, model: str) -> "subprocess.Popen[str]":
    """Trains, with a judge of this name."""
    told = PROFILE.format(url=vendor.base_url).replace('"stub"', f'"{model}"')
    profile = told.replace("max_tokens", 'structured = "json_schema"\nmax_tokens', 1)
    (run.parents[1] / "profiles.toml").write_text(profile, encoding="utf-8")
    code = "import sys; from pipelines.cli import main; sys.argv[0] = 'gongqing'; main()"
    options = ["--preset=cpu_smoke", f"--name={NAME}", "--provider=openai", "--budget=5"]
    return subprocess.Popen(
        [sys.executable, "-c", code, "train", "mindchat_ecot", *options, *(f"--set={k}={v}" for k, v in SET.items())],
        cwd=ROOT,
        env={**os.environ, "GONGQING_HOME": str(run.parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stopped(run: Path, process: "subprocess.Popen[str]") -> Stop:
    _, said = process.communicate(timeout=300)
    assert process.returncode == 1, said
    weights = max(last_weights("grpo", run).glob("*.pt"), key=lambda path: path.stat().st_mtime)
    with Ledger(run.parents[1] / "ledger.sqlite") as ledger:
        [budget] = ledger.budgets()
    return Stop(" ".join(said.split()), last_step(run), weights.stat().st_mtime, budget.spent)


@pytest.fixture(scope="module")
def gone(run: Path) -> Stop:
    """The host goes away once there is a checkpoint."""
    with Vendor() as vendor:
        process = command(run, vendor, "gone")
        while last_step(run) < SOUND and process.poll() is None:
            time.sleep(0.1)
    return stopped(run, process)


@pytest.fixture(scope="module")
def useless(run: Path, gone: Stop) -> Stop:
    """The next start, of a host that answers NaN. Its judge has another name than the one that is gone, whose verdicts
    would be known, and the same one until it is sound: nothing tells that it has been mended but what it says.
    """
    with Vendor() as vendor:
        vendor.change(faults={"nan": 1.0})
        return stopped(run, command(run, vendor, "mended"))


@pytest.fixture(scope="module")
def ended(run: Path, useless: Stop) -> Iterator[str]:
    """What the same command says once the host is sound."""
    with Vendor() as vendor:
        process = command(run, vendor, "mended")
        told, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
        yield told


def test_a_host_that_is_gone_stops_the_run(gone: Stop):
    """Either every question in a row fails, or most do: what was asked before is answered by the ledger."""
    assert "training ended with code 1: an output has no reward: " in gone.said
    assert "qwen-plus gives no answers" in gone.said or "the judge failed at" in gone.said
    assert "connection" in gone.said
    assert "it goes on from the last checkpoint" in gone.said


def test_a_host_that_is_no_judge_stops_the_run(useless: Stop):
    """Other forms of it, and a host that hangs: tests/integration/judge."""
    assert "training ended with code 1: an output has no reward: " in useless.said
    assert "(invalid_reply: not_a_number)" in useless.said
    assert "it goes on from the last checkpoint" in useless.said


def test_no_checkpoint_is_lost(gone: Stop, useless: Stop):
    assert gone.checkpoint >= SOUND
    assert (useless.checkpoint, useless.written) == (gone.checkpoint, gone.written)


def test_the_run_goes_on_from_its_checkpoint_and_ends(run: Path, gone: Stop, ended: str):
    assert list(metrics(run)) == list(range(1, STEPS + 1))
    [begun, *_] = [line for line in ended.splitlines() if line.startswith("step ")]
    assert begun.startswith(f"step {gone.checkpoint + 1} of {STEPS}")
    assert (run / "model" / "config.json").exists()


def test_nothing_was_learnt_from_an_output_that_nobody_judged(run: Path, ended: str):
    """What was scored in the starts that were stopped is in no step; whatever is has points from its judge."""
    scored = [
        json.loads(line)
        for path in (run / SCORED).glob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    terms = {f"{one['uid']}_{one['session']}_0": one["terms"] for one in scored}
    judged = 0
    for step in range(1, STEPS + 1):
        rows = list(map(json.loads, (run / ROLLOUTS / f"{step}.jsonl").read_text(encoding="utf-8").splitlines()))
        assert len(rows) == 64
        for row in rows:
            told = terms[row["uid"]]
            assert told["judge_ok"] == 1
            assert row["score"] == pytest.approx(told["r_format"] + told["r_answer"])
            judged += told["r_answer"] > 0
    assert judged > 40, "else little was shown"


def test_one_budget_holds_for_all_starts(run: Path, gone: Stop, useless: Stop, ended: str):
    """What stopped a run leaves it open, with what was spent; the end closes it."""
    assert 0 < gone.spent < useless.spent, "also a verdict of another form is paid for"
    with Ledger(run.parents[1] / "ledger.sqlite") as ledger:
        assert ledger.budgets() == []
        assert ledger.open_attempts() == []
