"""Evaluations from the web UI: figures as metadata, the cap of a day, and no file of the machine."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from judge_host import JudgeHost
from judge_process import profiles
from played import NAMES, played

from pipelines.defs import evaluations
from pipelines.defs.resources import HomeResource
from pipelines.operations.evaluate.evaluating import SUITES
from pipelines.settings import ROOT
from pipelines.store import Store


@pytest.fixture(scope="module")
def host() -> Iterator[JudgeHost]:
    with JudgeHost(played) as host:
        yield host


@pytest.fixture
def home(released_home: Path, host: JudgeHost, tmp_path: Path) -> Path:
    home = tmp_path / "home"
    shutil.copytree(released_home, home)
    profiles(home, host.base_url, names=NAMES, profile='key_variable = ""\n', temperature="temperature = 0.7\n")
    with (home / "gongqing.toml").open("a", encoding="utf-8") as file:
        file.write("daily_budget = 3\n")
    return home


def materialize(instance: dg.DagsterInstance, home: Path, suite: str, **config: Any) -> dg.ExecuteInProcessResult:
    name = f"evaluate_{suite}"
    [asset] = [one for one in evaluations.assets if one.key.to_user_string() == name]
    return dg.materialize(
        [asset],
        instance=instance,
        resources={"home": HomeResource(path=str(home))},
        run_config={"ops": {name: {"config": config}}} if config else {},
        raise_on_error=False,
    )


def failure(result: dg.ExecuteInProcessResult) -> str:
    (event,) = [event for event in result.all_events if event.is_step_failure]
    return str(event.event_specific_data)


def test_each_suite_is_an_asset_in_a_job_of_its_own():
    names = {asset.key.to_user_string() for asset in evaluations.assets}
    assert names == {f"evaluate_{suite}" for suite in (*SUITES, "people", "data")}
    assert {job.name for job in evaluations.jobs} == {name.replace("evaluate", "evaluation") for name in names}


def test_a_model_is_evaluated_and_its_figures_are_metadata(instance: dg.DagsterInstance, home: Path):
    made = materialize(instance, home, "automatic", target="tested", size=3, budget=1)
    assert made.success
    [event] = made.get_asset_materialization_events()
    figures = event.materialization.metadata["figures"]
    assert isinstance(figures, dg.TableMetadataValue)
    assert {record.data["model"] for record in figures.records} >= {"tested", "post_copied"}
    assert "听起来" not in str(figures), "no text stands in Dagster"
    assert Store(home / "data").partitions("evaluations") == ["tested"]


def test_of_a_release_the_data_are_measured(instance: dg.DagsterInstance, home: Path):
    assert materialize(instance, home, "data").success
    assert Store(home / "data").partitions("evaluations") == ["data-v1"]


def test_seekers_are_files_of_the_home_alone(instance: dg.DagsterInstance, home: Path):
    common = {"target": "tested", "seeker": "seeker", "budget": 1}
    for name in ("/etc/passwd", "../gongqing.toml", "seekers.jsonl"):
        assert "there is no such file of seekers" in failure(
            materialize(instance, home, "sage", seekers=name, **common)
        )
    (home / "evaluations").mkdir()
    shutil.copy(ROOT / "samples" / "evaluate" / "seekers.jsonl", home / "evaluations")
    assert materialize(instance, home, "sage", seekers="seekers.jsonl", **common).success


def test_nothing_is_read_or_spent_beyond_what_may_be(instance: dg.DagsterInstance, home: Path, host: JudgeHost):
    asked = len(host.asked)
    for config, says in (
        ({"target": "/etc/passwd"}, "the target is no run and no profile"),
        ({"target": "tested", "budget": 30}, "all runs in Dagster may spend 3"),
        ({"target": "tested"}, "budget"),
    ):
        assert says in failure(materialize(instance, home, "automatic", **config))
    assert len(host.asked) == asked
    assert Store(home / "data").partitions("evaluations") == []
