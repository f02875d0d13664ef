"""verl itself, on a CPU: a tiny model learns M's format by GRPO, and is killed in the middle."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from statistics import fmean

import pytest
from judge_host import JudgeHost, drawn
from judge_process import profiles

from pipelines.errors import Busy, RequestError
from pipelines.rewards.format import ecot
from pipelines.settings import ROOT
from pipelines.store.releases import Releases
from pipelines.train.launch import Run
from pipelines.train.prepare import prepare
from pipelines.train.recipe import recipe
from pipelines.train.runs import LOCK, ROLLOUTS, SCORED, START, told_of_rows
from pipelines.train.services import PYTHON
from schemas.reasoning import ECOT

NAME = "smoke"
KILLED_AT = 12
RECIPE = "mindchat_ecot"
JUDGE = ("--provider", "openai", "--budget", "50")

# One worker trains, once for all of them.
pytestmark = [pytest.mark.timeout(1500), pytest.mark.xdist_group("training")]


@pytest.fixture(scope="module")
def home(training_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home of its own, whose judge is a model on this machine."""
    home = tmp_path_factory.mktemp("judged") / "home"
    shutil.copytree(training_home, home, ignore=shutil.ignore_patterns("training"))
    with JudgeHost(drawn) as host:
        profiles(home, host.base_url, names=("qwen-plus",), profile='key_variable = ""\n')
        yield home


def run_of(home: Path, name: str = RECIPE, preset: str = "cpu_smoke", **given) -> Run:
    return prepare(home, recipe(name), preset, name=NAME, provider="openai", budget=Decimal(50), given=given)


def trained(home: Path) -> subprocess.Popen[str]:
    command = "import sys; from pipelines.cli import main; sys.argv[0] = 'gongqing'; main()"
    return subprocess.Popen(
        [sys.executable, "-c", command, "train", RECIPE, "--preset", "cpu_smoke", "--name", NAME, *JUDGE],
        cwd=ROOT,
        env={**os.environ, "GONGQING_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def killed(home: Path) -> str:
    """What the command says of a run whose trainer is killed, with all its group, behind its first checkpoint."""
    process = trained(home)
    run = run_of(home)
    while max(run.metrics(), default=0) < KILLED_AT and process.poll() is None:
        time.sleep(0.2)
    with pytest.raises(Busy, match="at work"):
        run.train(lambda step, metrics: None)
    os.killpg(int((run.folder / LOCK).read_text()), signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    return said


@pytest.fixture(scope="module")
def told(home: Path, killed: str) -> str:
    """What the same command says of the same run, which it brings to its end."""
    process = trained(home)
    told, said = process.communicate(timeout=1200)
    assert process.returncode == 0, said
    return told


def test_a_killed_trainer_is_told_of_with_where_to_look_and_what_to_do(killed: str, home: Path):
    assert "training ended with code -9" in killed
    assert str(run_of(home).folder / "log-0001.txt") in killed
    assert "goes on from the last checkpoint" in killed


def test_a_run_says_how_long_its_rows_are_and_what_lacked_media_before_its_first_step(told: str, home: Path):
    [rows] = re.findall(r"^text only: .*\nprompts of train: .*\nprompts of validation: .*$", told, re.MULTILINE)
    assert rows.splitlines() == told_of_rows(run_of(home).folder)
    assert told.index(rows) < told.index("\nstep ")


def test_it_goes_on_from_the_last_checkpoint(told: str):
    steps = [int(step) for step in re.findall(r"^step (\d+) of 25", told, re.MULTILINE)]
    assert steps == [10, *range(11, 26)], "what stands at step 10 is validated first"


def test_the_run_as_a_whole_is_told_at_the_end(home: Path, told: str):
    found = run_of(home).metrics()
    first, last = (found[step]["critic/score/mean"] for step in (1, 25))
    assert f"mean reward of a step: {first:.2f} at first, {last:.2f} at last" in told


def rollouts(home: Path, step: int) -> list[dict]:
    """verl's own: what the policy wrote in a step, and the reward that it was trained with."""
    lines = (run_of(home).folder / ROLLOUTS / f"{step}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_the_format_reward_rises(home: Path, told: str):
    rewards = [fmean(ecot(row["output"]).r_format for row in rollouts(home, step)) for step in range(1, 26)]
    assert rewards[0] < 0.5
    assert fmean(rewards[-3:]) > 0.8
    assert {"actor/entropy", "response_length/mean", "actor/grad_norm"} <= run_of(home).metrics()[25].keys()


def test_each_tag_is_one_token_of_its_model_and_no_special_one_which_would_vanish(home: Path, told: str):
    made = json.loads((run_of(home).folder / START / "tokenizer.json").read_text(encoding="utf-8"))
    special = {one["content"]: one["special"] for one in made["added_tokens"]}
    tags = {f"<{end}{name}>" for name in ECOT.names for end in ("", "/")}
    assert len(tags) == 10
    assert {special.get(tag) for tag in tags} == {False}


def test_the_reward_that_verl_used_is_form_and_judgement_of_the_outputs_that_it_logged(home: Path, told: str):
    scored = {}
    for path in (run_of(home).folder / SCORED).glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            scored[f"{one['uid']}_{one['session']}_0"] = one
    rows = rollouts(home, 25)
    assert len(rows) == 64
    for row in rows:
        terms = scored[row["uid"]]["terms"]
        assert scored[row["uid"]]["output"] == row["output"]
        assert terms["r_format"] == ecot(row["output"]).r_format
        assert terms["r_answer"] == (terms["fluency"] + terms["empathy"] + terms["support"]) / 15
        assert row["score"] == pytest.approx(terms["r_format"] + terms["r_answer"])
        assert terms["judge_ok"] == 1
    logged = run_of(home).metrics()[25]["critic/score/mean"]
    assert fmean(row["score"] for row in rows) == pytest.approx(logged, abs=1e-6)


def test_the_run_says_what_it_was_made_of(home: Path, told: str):
    folder = run_of(home).folder
    noted = json.loads((folder / "run.json").read_text())
    assert noted["release"] == {"name": "v1", "content": Releases(home).read("v1").content}
    assert noted["overrides"]["data.train_files"].endswith("grpo_ecot/train-00000-of-00001.parquet")
    assert list((folder / "tensorboard").iterdir())


def test_a_run_that_is_over_is_not_made_again_nor_taken_for_another(home: Path, told: str):
    assert run_of(home).train(lambda step, metrics: None) == run_of(home).folder / "model"
    with pytest.raises(RequestError, match="asked for something else"):
        run_of(home, **{"trainer.total_training_steps": 30}).train(lambda step, metrics: None)


SAMPLES = """
import json, sys, torch
import pyarrow.parquet as pq
from transformers import AutoModelForCausalLM, AutoTokenizer
from pipelines.rewards.format import ecot
tokens = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
torch.manual_seed(0)
prompts = [tokens.apply_chat_template(prompt, add_generation_prompt=True, enable_thinking=False)["input_ids"]
           for prompt in pq.read_table(sys.argv[2])["prompt"].to_pylist()] * 8
width = max(map(len, prompts))
ids = torch.tensor([[tokens.pad_token_id] * (width - len(prompt)) + prompt for prompt in prompts])
with torch.no_grad():
    drawn = model.generate(input_ids=ids, attention_mask=(ids != tokens.pad_token_id).long(), do_sample=True,
                           temperature=1.0, top_k=0, max_new_tokens=48)
texts = [tokens.decode(row[width:], skip_special_tokens=True) for row in drawn]
print(json.dumps(sum(ecot(text).r_format for text in texts) / len(texts)))
"""


def test_the_merged_model_loads_and_writes_the_format(home: Path, told: str):
    [path] = re.findall(r"^the model: (.*)$", told, re.MULTILINE)
    rows = Releases(home).folder("v1") / "grpo_ecot" / "validation-00000-of-00001.parquet"
    ran = subprocess.run(
        [PYTHON, "-c", SAMPLES, path, rows], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) > 0.75


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("custom_reward_function.path", "x.py"),
        ("data.max_promt_length", 1),
        ("actor_rollout_ref.actor.ppo_mini_batch_size", 128),
    ],
)
def test_what_verl_would_refuse_or_ignore_is_refused_before_a_run(home: Path, key: str, value):
    with pytest.raises(RequestError, match="verl refuses the configuration"):
        run_of(home, preset="gpu", **{key: value}).composed()


def test_runs_lie_in_the_home(home: Path):
    assert run_of(home).folder == home / "training" / NAME
