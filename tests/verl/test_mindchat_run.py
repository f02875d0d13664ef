"""M's recipe in verl itself, on a CPU: a tiny model learns the format by GRPO, and the host that its judge asks goes
away and is back: the same command is given twice.
"""

import json
import re
import shutil
import subprocess
import time
from decimal import Decimal
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

import pytest
from judge_host import JudgeHost, drawn
from judge_process import profiles
from train_env import read_lines, script_result, settings_options, start_command

from pipelines.errors import RequestError
from pipelines.llm.ledger.ledger import Ledger
from pipelines.rewards.format import ecot
from pipelines.store.releases import Releases
from pipelines.train.launch import Run
from pipelines.train.prepare import prepare
from pipelines.train.recipe import load_recipe
from pipelines.train.runs import ROLLOUTS, SCORED, describe_rows
from pipelines.train.trainers import TRAINERS, last_step

NAME, RECIPE, STEPS, SAVED = "smoke", "mindchat_ecot", 16, 6
SET = {"trainer.total_training_steps": STEPS, "trainer.save_freq": SAVED, "trainer.test_freq": STEPS}

pytestmark = [pytest.mark.timeout(1500), pytest.mark.xdist_group("training")]


@pytest.fixture(scope="module")
def home(training_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with other settings, and a ledger."""
    home = tmp_path_factory.mktemp("judged") / "home"
    shutil.copytree(training_home, home, ignore=shutil.ignore_patterns("training"))
    return home


def run_of(home: Path, **settings: object) -> Run:
    options = {"name": NAME, "provider": "openai", "budget": Decimal(50), "settings": SET | settings}
    return prepare(home, load_recipe(RECIPE), "cpu_smoke", **options)


def start(home: Path, host: JudgeHost) -> "subprocess.Popen[str]":
    """Trains, with a judge at a host."""
    profiles(home, host.base_url, names=("qwen-plus",), profile='key_variable = ""\n')
    with (home / "gongqing.toml").open("a", encoding="utf-8") as file:
        file.write("[rewards]\njudge_timeout = 4\njudge_attempts = 2\n")
    options = ("--preset=cpu_smoke", f"--name={NAME}", "--provider=openai", "--budget=50", *settings_options(SET))
    return start_command(home, "train", RECIPE, *options)


@pytest.fixture(scope="module")
def stopped(home: Path) -> SimpleNamespace:
    """The host goes away once there is a checkpoint."""
    folder = run_of(home).folder
    with JudgeHost(drawn) as host:
        process = start(home, host)
        while last_step(folder) < SAVED and process.poll() is None:
            time.sleep(0.1)
    _, stderr = process.communicate(timeout=600)
    assert process.returncode == 1, stderr
    with Ledger(home / "ledger.sqlite") as ledger:
        [budget] = ledger.budgets()
    return SimpleNamespace(stderr=" ".join(stderr.split()), checkpoint=last_step(folder), spent=budget.spent)


@pytest.fixture(scope="module")
def ended(home: Path, stopped: SimpleNamespace) -> str:
    """The output of the same command once the host is back."""
    with JudgeHost(drawn) as host:
        process = start(home, host)
        stdout, stderr = process.communicate(timeout=1200)
    assert process.returncode == 0, stderr
    return stdout


def rollouts(home: Path, step: int) -> list[dict]:
    """verl's own: what the policy wrote in a step, and the reward that it was trained with."""
    return read_lines(run_of(home).folder / ROLLOUTS / f"{step}.jsonl")


def test_a_host_that_is_gone_stops_the_run(stopped: SimpleNamespace, home: Path):
    """Every question in a row fails, or most do: the ledger answers what was asked before."""
    assert "training ended with code 1: an output has no reward: " in stopped.stderr
    assert "qwen-plus gives no answers" in stopped.stderr or "the judge failed at" in stopped.stderr
    assert "connection" in stopped.stderr
    assert str(run_of(home).folder / "log-0001.txt") in stopped.stderr
    assert "it goes on from the last checkpoint" in stopped.stderr


def test_the_run_goes_on_from_its_last_checkpoint(home: Path, stopped: SimpleNamespace, ended: str):
    assert stopped.checkpoint >= SAVED
    steps = [int(step) for step in re.findall(rf"^step (\d+) of {STEPS}", ended, re.MULTILINE)]
    assert steps == [*range(stopped.checkpoint, STEPS + 1)], "what stands at the checkpoint is validated first"
    assert [step for step in run_of(home).metrics() if step] == list(range(1, STEPS + 1))
    assert stopped.spent > 0
    with Ledger(home / "ledger.sqlite") as ledger:
        assert (ledger.budgets(), ledger.open_attempts()) == ([], []), "one budget holds for both: the end closes it"


def test_a_run_shows_its_rows_before_its_first_step_and_its_reward_at_the_end(ended: str, home: Path):
    [rows] = re.findall(r"^text only: .*\nprompts of train: .*\nprompts of validation: .*$", ended, re.MULTILINE)
    assert rows.splitlines() == describe_rows(run_of(home).folder)
    assert ended.index(TRAINERS["grpo"].smoke) < ended.index(rows) < ended.index("\nstep ")
    metrics = run_of(home).metrics()
    first, last = (metrics[step]["critic/score/mean"] for step in (1, STEPS))
    assert f"mean reward of a step: {first:.2f} at first, {last:.2f} at last" in ended


def test_the_format_reward_rises(home: Path, ended: str):
    rewards = [fmean(ecot(row["output"]).r_format for row in rollouts(home, step)) for step in range(1, STEPS + 1)]
    assert rewards[0] < 0.5
    assert fmean(rewards[-3:]) > 0.8
    assert {"actor/entropy", "response_length/mean", "actor/grad_norm"} <= run_of(home).metrics()[STEPS].keys()


def test_the_reward_of_every_step_is_form_and_judgement_of_the_outputs_and_all_were_judged(home: Path, ended: str):
    """What was scored after the last checkpoint of the start that was stopped is in no step."""
    scored = {f"{one['uid']}_{one['session']}_0": one for one in read_lines(run_of(home).folder / SCORED)}
    metrics = run_of(home).metrics()
    judged = 0
    for step in range(1, STEPS + 1):
        rows = rollouts(home, step)
        assert len(rows) == 64
        for row in rows:
            terms = scored[row["uid"]]["terms"]
            assert scored[row["uid"]]["output"] == row["output"]
            assert terms["judge_ok"] == 1
            assert terms["r_format"] == ecot(row["output"]).r_format
            assert terms["r_answer"] == (terms["fluency"] + terms["empathy"] + terms["support"]) / 15
            assert row["score"] == pytest.approx(terms["r_format"] + terms["r_answer"])
            judged += terms["r_answer"] > 0
        assert fmean(row["score"] for row in rows) == pytest.approx(metrics[step]["critic/score/mean"], abs=1e-6)
    assert judged > 40, "else little was shown"


def test_the_run_notes_what_it_was_made_of_and_is_not_made_again_nor_taken_for_another(home: Path, ended: str):
    run = run_of(home)
    assert run.folder == home / "training" / NAME
    noted = json.loads((run.folder / "run.json").read_text())
    assert noted["release"] == {"name": "v1", "content": Releases(home).read("v1").content}
    assert noted["overrides"]["data.train_files"].endswith("grpo_ecot/train-00000-of-00001.parquet")
    assert list((run.folder / "tensorboard").iterdir())
    assert run.train(pytest.fail) == run.folder / "model"
    with pytest.raises(RequestError, match="asked for something else"):
        run_of(home, **{"trainer.total_training_steps": 30}).train(pytest.fail)


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
    outputs = model.generate(input_ids=ids, attention_mask=(ids != tokens.pad_token_id).long(), do_sample=True,
                             temperature=1.0, top_k=0, max_new_tokens=48)
texts = [tokens.decode(row[width:], skip_special_tokens=True) for row in outputs]
print(json.dumps(sum(ecot(text).r_format for text in texts) / len(texts)))
"""


def test_the_merged_model_loads_and_writes_the_format(home: Path, ended: str):
    [path] = re.findall(r"^the model: (.*)$", ended, re.MULTILINE)
    rows = Releases(home).folder("v1") / "grpo_ecot" / "validation-00000-of-00001.parquet"
    assert script_result(SAMPLES, path, rows) > 0.75
