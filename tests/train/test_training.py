"""verl itself, on a CPU: configurations that it accepts, prompt sets that it reads, and a tiny model that learns M's
format by GRPO, killed in the middle.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.errors import Busy, RequestError
from pipelines.release.releases import Releases
from pipelines.releasing import release
from pipelines.rewards.format import ecot
from pipelines.settings import ROOT, Settings
from pipelines.train.launch import FOLDER, LOCK, PYTHON, Run, prepare
from pipelines.train.recipe import recipe, recipes

NAME = "smoke"
KILLED_AT = 12
RECIPE = "mindchat_ecot"

# One worker trains, once for all of them.
pytestmark = [pytest.mark.timeout(1500), pytest.mark.xdist_group("training")]


@pytest.fixture(scope="module")
def home(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample home, and a release of it."""
    if not PYTHON.exists():
        pytest.skip("needs .venv-train: make train-env")
    home = tmp_path_factory.mktemp("training") / "home"
    shutil.copytree(sample_home, home)
    release(home, "v1", allow=["rules_rows"], settings=Settings())
    return home


def run_of(home: Path, name: str = RECIPE, preset: str = "cpu_smoke", **given) -> Run:
    return prepare(home, recipe(name), preset, name=NAME, given=given)


def trained(home: Path) -> subprocess.Popen[str]:
    command = "import sys; from pipelines.cli import main; sys.argv[0] = 'gongqing'; main()"
    return subprocess.Popen(
        [sys.executable, "-c", command, "train", RECIPE, "--preset", "cpu_smoke", "--name", NAME],
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


def test_it_goes_on_from_the_last_checkpoint(told: str):
    steps = [int(step) for step in re.findall(r"^step (\d+) of 25", told, re.MULTILINE)]
    assert steps == [10, *range(11, 26)], "what stands at step 10 is validated first"


def test_the_run_as_a_whole_is_told_at_the_end(home: Path, told: str):
    found = run_of(home).metrics()
    first, last = (found[step]["critic/score/mean"] for step in (1, 25))
    assert f"mean reward of a step: {first:.2f} at first, {last:.2f} at last" in told


def test_the_format_reward_rises(home: Path, told: str):
    found = run_of(home).metrics()
    rewards = [found[step]["critic/score/mean"] for step in range(1, 26)]
    assert rewards[0] < 0.5
    assert sum(rewards[-3:]) / 3 > 0.8
    assert {"actor/entropy", "response_length/mean", "actor/grad_norm"} <= found[25].keys()


def test_the_reward_that_verl_used_is_that_of_the_outputs_that_it_logged(home: Path, told: str):
    rows = [json.loads(line) for line in (run_of(home).folder / "rollouts" / "25.jsonl").read_text().splitlines()]
    assert len(rows) == 64
    for row in rows:
        assert row["score"] == pytest.approx(ecot(row["output"]).r_format)
    logged = run_of(home).metrics()[25]["critic/score/mean"]
    assert sum(row["score"] for row in rows) / 64 == pytest.approx(logged, abs=1e-6)


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


@pytest.mark.parametrize("name", recipes())
def test_verl_accepts_the_configuration_of_every_recipe(home: Path, name: str):
    """What stands in verl's whole configuration in the end, not what we wrote."""
    told = recipe(name)
    run = prepare(home, told, "gpu", given={"data.train_files": "a.parquet", "data.val_files": "b.parquet"})
    found = run.composed()
    for key, value in told.paper.items():
        at = found
        for part in key.lstrip("+").split("."):
            at = at[part]
        assert at == pytest.approx(float(value)) if isinstance(at, float) else at == value, key
    assert found["reward"]["custom_reward_function"]["path"] == f"pkg://pipelines.rewards.{told.reward}"


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


READ = """
import json, sys
from verl.trainer.ppo.utils import create_rl_dataset
from verl.utils import hf_tokenizer
from omegaconf import OmegaConf
from pipelines.train.compose import composed
config = OmegaConf.create(composed(sys.argv[2:]))
print(len(create_rl_dataset(config.data.train_files, config.data, hf_tokenizer(sys.argv[1]), None, is_train=True)))
"""


def test_verl_reads_every_row_of_a_prompt_set(home: Path, told: str):
    """None is lost to its length without being counted by us before."""
    from pipelines.train.recipe import as_arguments

    run = run_of(home)
    ran = subprocess.run(
        [PYTHON, "-c", READ, run.folder / "start", *as_arguments(run.overrides)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": str(home / "hf")},
        cwd=home,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout.splitlines()[-1]) == Releases(home).read("v1").rows("grpo_ecot", "train")


@pytest.mark.parametrize("name", ["empathy_coe", "compeer_cer"])
def test_a_recipe_whose_reward_is_not_there_yet_says_so(home: Path, name: str):
    files = {"data.train_files": "a.parquet", "data.val_files": "b.parquet"}
    run = Run(home / FOLDER / name, recipe(name), "gpu", Releases(home).read("v1"), files)
    with pytest.raises(RequestError, match="is not there yet"):
        run.train(lambda step, metrics: None)
    assert not run.folder.exists()


def test_there_must_be_a_release_with_the_rows(tmp_path: Path):
    with pytest.raises(RequestError, match="no release to train on"):
        run_of(tmp_path)


def test_a_release_without_the_rows_says_so(home: Path):
    with pytest.raises(RequestError, match="no train rows of rm_outcome"):
        prepare(home, recipe(RECIPE).model_copy(update={"rows": "rm_outcome"}), "gpu", given={})


def test_runs_lie_in_the_home(home: Path):
    assert run_of(home).folder == home / FOLDER / NAME
