"""verl's SFT trainer, for real: a generative reward model from labels of people, killed in the middle."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.settings import ROOT
from pipelines.train.prepare import prepare
from pipelines.train.recipe import recipe
from pipelines.train.runs import LOCK
from pipelines.train.services import PYTHON

NAME = "verdicts"
# Batches so large that there is time to kill it in the middle: steps of four rows take some hundredths of a second.
STEPS = {"trainer.total_training_steps": 30, "trainer.save_freq": 5, "data.train_batch_size": 32}

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("training")]


def started(home: Path) -> subprocess.Popen[str]:
    command = "import sys; from pipelines.cli import main; sys.argv[0] = 'gongqing'; main()"
    settings = [word for key, value in STEPS.items() for word in ("--set", f"{key}={value}")]
    return subprocess.Popen(
        [sys.executable, "-c", command, "train", "unifireward", "--preset", "cpu_smoke", "--name", NAME, *settings],
        cwd=ROOT,
        env={**os.environ, "GONGQING_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def told(training_home: Path) -> str:
    """What the command says of a run that was killed, with all its group, behind its first checkpoint."""
    run = prepare(training_home, recipe("unifireward"), "cpu_smoke", name=NAME, given=STEPS)
    process = started(training_home)
    while max(run.metrics(), default=0) < 6 and process.poll() is None:
        time.sleep(0.05)
    os.killpg(int((run.folder / LOCK).read_text()), signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert "training ended with code -9" in said
    process = started(training_home)
    told, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    return told


def test_it_goes_on_from_the_last_checkpoint(told: str):
    steps = [int(step) for step in re.findall(r"^step (\d+) of 30", told, re.MULTILINE)]
    assert steps[0] % 5 == 1
    assert steps == list(range(steps[0], 31))
    assert steps[0] > 1


def test_its_loss_falls(told: str, training_home: Path):
    found = prepare(training_home, recipe("unifireward"), "cpu_smoke", name=NAME, given=STEPS).metrics()
    assert sorted(found) == list(range(1, 31))
    assert found[30]["train/loss"] < found[1]["train/loss"] - 1
    assert f"loss of a step: {found[1]['train/loss']:.2f} at first" in told


def test_it_says_of_how_many_rows_of_each_variant_it_learns(told: str, training_home: Path):
    run = prepare(training_home, recipe("unifireward"), "cpu_smoke", name=NAME, given=STEPS)
    found = dict(re.findall(r"(\w+) (\d+)", re.findall(r"^rows by variant: (.*)$", told, re.MULTILINE)[0]))
    assert set(found) == {"none", "P"}
    assert sum(map(int, found.values())) == run.rows


LEARNT = """
import json, sys
from omegaconf import OmegaConf
from transformers import AutoTokenizer
from verl.trainer.sft_trainer import create_sft_dataset
from pipelines.train.compose import composed

config = OmegaConf.create(composed("sft_trainer_engine", sys.argv[2:]))
tokens = AutoTokenizer.from_pretrained(sys.argv[1])
tokens.chat_template = {template}
rows = create_sft_dataset(config.data.train_files, config.data, tokens, None)
found = []
for place in range(40):
    row, messages = rows[place], rows.messages[place]
    learnt = row["loss_mask"].bool()
    prompt = tokens.apply_chat_template(messages[:2], add_generation_prompt=True, enable_thinking=False)["input_ids"]
    found.append({{
        "learnt": tokens.decode(row["input_ids"][learnt]),
        "replies": [one["content"] for one in messages if one["role"] == "assistant"],
        "begins": row["input_ids"][: len(prompt)].tolist() == prompt,
    }})
print(json.dumps(found, ensure_ascii=False))
"""
# As Qwen3's own: a message alone has no block of thoughts, and the generation prompt ends in an empty one.
BLOCK_IN_PROMPT_ALONE = (
    "{%- for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{{ message['content'] + '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{%- if not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}"
)


@pytest.mark.parametrize("template", ["tokens.chat_template", repr(BLOCK_IN_PROMPT_ALONE)], ids=["ours", "Qwen3's"])
def test_every_reply_is_learnt_whole_behind_the_prompt_that_will_ask_for_it(
    told: str, training_home: Path, template: str
):
    from pipelines.train.recipe import as_arguments

    run = prepare(training_home, recipe("unifireward"), "cpu_smoke", name=NAME, given=STEPS)
    ran = subprocess.run(
        [PYTHON, "-c", LEARNT.format(template=template), run.folder / "start", *as_arguments(run.overrides)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": str(training_home / "hf")},
        cwd=training_home,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    for row in json.loads(ran.stdout.splitlines()[-1]):
        assert row["learnt"] == "".join(f"{reply}<|im_end|>\n" for reply in row["replies"])
        assert row["begins"]


def test_the_model_is_a_folder_that_transformers_loads(told: str):
    [path] = re.findall(r"^the model: (.*)$", told, re.MULTILINE)
    load = "import sys; from transformers import AutoModelForCausalLM as M; print(M.from_pretrained(sys.argv[1]).dtype)"
    ran = subprocess.run([PYTHON, "-c", load, path], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
