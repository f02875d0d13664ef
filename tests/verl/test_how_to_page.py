"""docs/how-to.md, "train with another reward": the reward of the page and a recipe of it, in a copy of the checkout."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import blocks, commands
from train_env import QUIET, read_lines

from pipelines.settings import ROOT
from pipelines.train.runs import SCORED

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("training")]


def test_a_reward_of_ones_own_trains(training_home: Path, tmp_path: Path):
    checkout = tmp_path / "checkout"
    for folder in ("pipelines", "schemas", "crawlers", "samples"):
        shutil.copytree(ROOT / folder, checkout / folder)
    (checkout / ".venv-train").symlink_to(ROOT / ".venv-train")
    [reward] = blocks("how-to.md", "python")
    (checkout / "pipelines" / "rewards" / "lengths_alone.py").write_text(reward, encoding="utf-8")
    recipes = checkout / "pipelines" / "train" / "recipes"
    nearest = (recipes / "mindchat_ecot.yaml").read_text(encoding="utf-8")
    mine = nearest.replace("reward: mindchat", "reward: lengths_alone").replace("services: [judge]", "services: []")
    (recipes / "mine.yaml").write_text(mine, encoding="utf-8")
    home = tmp_path / "home"
    shutil.copytree(training_home, home, ignore=shutil.ignore_patterns("training"))
    asked = re.findall(r"^gongqing (train mine .*|show rollouts .*)$", "\n".join(commands("how-to.md")), re.MULTILINE)
    assert len(asked) == 3
    environment = {**os.environ, **QUIET, "PYTHONPATH": str(checkout), "GONGQING_HOME": str(home)}
    for command in asked:
        words = [sys.executable, "-c", "from pipelines.cli import main; main()", *command.split()]
        ran = subprocess.run(words, cwd=checkout, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
    assert "mine-cpu_smoke-v1" in ran.stdout, "the rollouts"
    [run] = (home / "training").iterdir()
    assert "characters" in (run / "report.html").read_text(encoding="utf-8")
    scored = [line for line in read_lines(run / SCORED) if line["split"] == "train"]
    assert scored
    for line in scored:
        assert line["terms"]["characters"] == len(line["output"])
        assert line["terms"]["score"] == pytest.approx(min(len(line["output"]), 300) / 300)
