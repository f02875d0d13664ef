"""Runs of training in Dagster: what is declared, metadata, and how a run fails. A real run: test_empathy_run."""

import json
import re
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
import yaml
from pages import indented
from rollout_lines import BY_VARIANT, ROWS, as_jsonl, run_of, scored_line, step_line
from train_env import failure, materialize

from pipelines.core.home import Home
from pipelines.definitions import build_definitions
from pipelines.defs.resources import HomeResource
from pipelines.defs.training import GROUP, Judging, _described, _failure, _VerdictShare
from pipelines.errors import TrainingFailed
from pipelines.llm.interface import JUDGES
from pipelines.settings import ROOT
from pipelines.store import Store
from pipelines.train.alarms import Alarm
from pipelines.train.page import Outcome, report
from pipelines.train.recipe import recipe_names

KEY = dg.AssetKey("train_mindchat_ecot")

pytestmark = pytest.mark.filterwarnings(
    "ignore::dagster.PreviewWarning", "ignore:AssetExecutionContext.run_id:DeprecationWarning"
)


# What is declared


def test_there_is_an_asset_and_a_job_of_its_own_for_every_recipe():
    graph = build_definitions().get_repository_def().asset_graph
    ours = {key for key in graph.get_all_asset_keys() if graph.get(key).group_name == GROUP}
    assert {key.to_user_string() for key in ours} == {f"train_{name}" for name in recipe_names()}
    assert {parent for key in ours for parent in graph.get(key).parent_keys} == {dg.AssetKey("release")}
    for job in build_definitions().get_repository_def().get_all_jobs():
        selected = ours & set(job.asset_layer.executable_asset_keys)
        expected = {dg.AssetKey(job.name.replace("training_", "train_"))} if job.name.startswith("training_") else set()
        if not job.name.startswith("__"):
            assert selected == expected, job.name


def test_definitions_load_without_what_trains():
    loaded = "import sys, pipelines.definitions; print(sorted({'torch', 'verl', 'ray', 'jinja2'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"torch", "verl", "ray"} & set(ran.stdout.split("'"))


# What is shown


def test_a_run_is_described_by_figures_and_places_and_by_none_of_its_words(tmp_path: Path):
    steps = {step: {"critic/score/mean": 0.1 * step, "actor/entropy": 1.0} for step in range(1, 6)}
    run = run_of(tmp_path / "run", {}, metrics=steps)
    (run / "checkpoints" / "global_step_10").mkdir(parents=True)
    (run / "checkpoints" / "global_step_5").mkdir()
    alarm = Alarm("echo", 3, "12 % of the outputs repeat what they answer", {"share": 0.12}, "read them")
    shown = _described(run, Outcome(None, {}, [alarm], run / "report.html"))
    assert (shown["reward_first"], shown["reward"], shown["steps"]) == (0.1, 0.5, 5)
    assert [record.data["step"] for record in shown["checkpoints"].records] == [5, 10]
    assert [record.data["alarm"] for record in shown["alarms"].records] == ["echo"]
    assert shown["plot: reward"].value.startswith("![reward](data:image/png;base64,")
    assert shown["rollouts"] == "none"
    assert shown["content"] == "c0ffee"
    rows = [record.data["of the rows"] for record in shown["rows"].records]
    assert rows == [ROWS["text_only"], BY_VARIANT, *ROWS["lengths"]]


def test_the_configuration_of_the_page_is_that_of_a_job():
    [config] = map(yaml.safe_load, indented("training.md", "ops:"))
    assert dg.validate_run_config(build_definitions().resolve_job_def("training_mindchat_ecot"), config)


def test_the_terms_of_its_reward_are_shown_and_no_word_that_was_written_or_judged(tmp_path: Path):
    words = ["我睡不着", "抱抱你", "别想太多", "很温暖"]
    steps, scored = {}, {}
    for step, ok in ((2, 1.0), (10, 0.5)):
        outputs = [(f"{step}", i, words[1 + i]) for i in range(2)]
        steps[step] = [step_line(*one, prompt=words[0]) for one in outputs]
        scored[f"{step}"] = [scored_line(*one, words[3], r_format=step / 10, judge_ok=ok) for one in outputs]
    run = run_of(tmp_path / "training" / "run", steps, scored, {2: {"critic/score/mean": 0.5}})
    shown = _described(run, report(Store(tmp_path / "data"), run))
    (version,) = Store(tmp_path / "data").versions("rollouts", "run")
    assert shown["rollouts"] == f"rollouts/run@{version.version}"
    assert (shown["judge_ok_first"], shown["judge_ok"]) == (1.0, 0.5)
    assert (shown["reward_first"], shown["reward"]) == (0.5, 0.5)
    terms = {one.data["term"]: (one.data["first"], one.data["last"]) for one in shown["terms_of_the_reward"].records}
    assert terms == {"judge_ok": (1.0, 0.5), "r_format": (0.2, 1.0), "score": (0.5, 0.5)}
    for title in ("terms of the reward", "share of outputs with the judge's verdict"):
        assert shown[f"plot: {title}"].value.startswith(f"![{title}](data:image/png;base64,")
    text = repr({name: getattr(value, "value", value) for name, value in shown.items()})
    assert not [one for one in words if one in text or json.dumps(one).strip('"') in text]


def test_a_failure_repeats_the_trainers_words_and_is_described_unless_that_fails_too(tmp_path: Path):
    run = run_of(tmp_path / "training" / "run", {}, metrics={1: {"critic/score/mean": 0.5}})
    home = HomeResource(path=str(tmp_path))
    error = TrainingFailed("the trainer ended with code 1", where=run, hint="run the same command again")
    failed = _failure(home, run, error)
    assert failed.description == str(error)
    assert (failed.metadata["release"].value, failed.metadata["steps"].value) == ("v1", 1)
    with Home(tmp_path).lock("training"):
        failed = _failure(home, run, error)
    assert failed.description.startswith(str(error))
    assert "an erasure is at work" in failed.description


def test_the_share_of_verdicts_is_of_what_was_scored_since_the_last_step(tmp_path: Path):
    verdicts = _VerdictShare(tmp_path)
    assert verdicts() is None
    path = tmp_path / "1.jsonl"
    path.write_text(as_jsonl([scored_line("a", 0, "甲", judge_ok=1.0), scored_line("a", 1, "乙", judge_ok=0.0)]))
    assert verdicts() == 0.5
    line = as_jsonl([scored_line("b", 0, "丙", judge_ok=1.0)])
    with path.open("a") as file:
        file.write(line[:20])
    assert verdicts() is None, "half a line is being written"
    with path.open("a") as file:
        file.write(line[20:])
    (tmp_path / "2.jsonl").write_text(as_jsonl([scored_line("c", 0, "丁", judge_ok=1.0)]))
    assert verdicts() == 1.0


def test_a_provider_that_there_is_not_is_refused_before_anything_starts(tmp_path: Path, instance: dg.DagsterInstance):
    with pytest.raises(dg.DagsterInvalidConfigError, match="config:provider not in enum type Judging got nosuch"):
        materialize(KEY, tmp_path, instance, provider="nosuch")
    assert [one.value for one in Judging] == [*JUDGES, "none"]


def test_a_request_that_cannot_be_carried_out_fails_with_its_hint(tmp_path: Path, instance: dg.DagsterInstance):
    """Through the process: there is no such ablation, or no environment to train in."""
    found = failure(materialize(KEY, tmp_path, instance, provider="replay", ablation="nosuch")).user_failure_data
    assert re.search(r"there is no ablation of mindchat_ecot 'nosuch'|no environment to train in", found.description)
    assert "hint: " in found.description


@pytest.mark.drill("web UI")
def test_a_judge_may_spend_no_more_than_the_settings_allow(tmp_path: Path, instance: dg.DagsterInstance):
    refused = failure(materialize(KEY, tmp_path, instance, provider="openai", budget=9000.0))
    assert "may spend 0, not 9000" in str(refused.error)
