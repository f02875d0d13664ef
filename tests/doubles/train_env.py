"""What tests train in: the environment, a home with a release, a tiny model to start from, the command."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import pytest

from pipelines.defs.resources import HomeResource
from pipelines.defs.training import trainings
from pipelines.settings import ROOT, Rewards
from pipelines.train.experiment import Planned, plan_runs, read_experiment
from pipelines.train.prepare import prepare
from pipelines.train.recipe import load_recipe
from pipelines.train.runs import LOCK
from pipelines.train.services import PYTHON

QUIET = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
# As Qwen3's own: a message alone has no block of thoughts, and the generation prompt ends in an empty one.
BLOCK_IN_PROMPT_ALONE = (
    "{%- for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{{ message['content'] + '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{%- if not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}"
)


def require_train_env() -> None:
    """Fails where there is no environment to train in, which `make test` makes: nothing is left out without it."""
    if not PYTHON.exists():
        pytest.fail("there is no .venv-train: make train-env")


def trained(home: Path, recipe: str, name: str) -> Path:
    """The folder of a run of a recipe as `cpu_smoke` has it, trained to its end."""
    run = prepare(home, load_recipe(recipe), "cpu_smoke", name=name)
    run.train(lambda step, metrics: None)
    return run.folder


def in_train_env(*words: object, stdin: Any = None, cwd: Path | None = None, **environment: str) -> str:
    """Runs Python in `.venv-train`, with `stdin` as JSON; its output."""
    require_train_env()
    command, variables = [str(PYTHON), *map(str, words)], {**os.environ, **QUIET, **environment}
    ran = subprocess.run(command, input=json.dumps(stdin), env=variables, cwd=cwd, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def script_result(script: str, *words: object, **named: Any) -> Any:
    """The last line that a script prints in `.venv-train`, which is JSON."""
    return json.loads(in_train_env("-c", script, *words, **named).splitlines()[-1])


def start_command(home: Path, *words: object, **environment: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", "from pipelines.cli import main; main()", *map(str, words)]
    variables = {**os.environ, "GONGQING_HOME": str(home), **environment}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, env=variables, text=True, **pipes)


def settings_options(settings: dict[str, Any]) -> list[str]:
    return [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]


def materialize(key: dg.AssetKey, home: Path, instance: dg.DagsterInstance, **config: object) -> Any:
    """A run of the asset of a recipe on a home, on a CPU."""
    return dg.materialize(
        [one for one in trainings if key in one.keys],
        instance=instance,
        resources={"home": HomeResource(path=str(home))},
        run_config={"ops": {key.to_user_string(): {"config": {"preset": "cpu_smoke", **config}}}},
        raise_on_error=False,
    )


def failure(result: dg.ExecuteInProcessResult) -> Any:
    """How the one step that failed did."""
    (event,) = [event for event in result.all_events if event.is_step_failure]
    return event.event_specific_data


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a JSON Lines file, or of all that lie in a folder."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    # A tiny policy writes whatever character, and splitlines() would split at a few that JSON leaves as they are.
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n") if line]


# An experiment of verl's SFT and the contrastive training.
STEPS, SAVED, ROWS, SEED = 20, 5, 160, 7
EXPERIMENT = f"""
name = "real"
preset = "cpu_smoke"
seeds = [{SEED}]
rows = {ROWS}

[[ablations]]
recipe = "unifireward"
[[ablations]]
recipe = "empathy_encoder"
[settings.sft]
"trainer.total_training_steps" = {STEPS}
"trainer.save_freq" = {SAVED}
"data.train_batch_size" = 8

[settings.contrastive]
epochs = 1
"""


class Trained(NamedTuple):
    """One that was killed, and started again: what the first start printed to stderr, what processes it left behind."""

    file: Path
    plan: list[Planned]
    killed: str
    left: list[str]
    results: list[dict[str, Any]]


def train_experiment(home: Path, folder: Path) -> Trained:
    """`EXPERIMENT` in a home: its trainer is killed behind the first checkpoint of its first run, and it is started
    again.
    """
    file = folder / "ablations.toml"
    file.write_text(EXPERIMENT, encoding="utf-8")
    plan = plan_runs(home, read_experiment(file), Rewards())
    run = plan[0].run
    process = start_command(home, "experiment", file)
    while max(run.metrics(), default=0) <= SAVED and process.poll() is None:
        time.sleep(0.05)
    os.kill(int((run.folder / LOCK).read_text()), signal.SIGKILL)
    _, killed = process.communicate(timeout=120)
    left = [words for words in commands().values() if str(run.folder) in words]
    process = start_command(home, "experiment", file, "--json")
    stdout, stderr = process.communicate(timeout=1200)
    assert process.returncode == 0, stderr
    return Trained(file, plan, killed, left, json.loads(stdout))


def commands() -> dict[int, str]:
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            found[int(path.parent.name)] = path.read_bytes().replace(b"\0", b" ").decode()
    return found
