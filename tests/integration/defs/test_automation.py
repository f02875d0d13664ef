"""What makes tables by itself: once what they are made from is another and its checks passed, and not before."""

import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pipelines.definitions import build_definitions
from pipelines.defs import assets, schedules
from pipelines.defs.assets import WHEN_NEW
from pipelines.defs.resources import HomeResource
from pipelines.flow.stages import STAGES
from pipelines.settings import ROOT

FREE = {table for stage in STAGES if not stage.asks for table in stage.tables}


def evaluate(definitions: dg.Definitions, instance: dg.DagsterInstance, cursor: Any = None) -> Any:
    everything = dg.AssetSelection.all()
    return dg.evaluate_automation_conditions(definitions, instance, asset_selection=everything, cursor=cursor)


class Source:
    """A source and a table made from it, under the condition: the version and the check are what a test says."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance, self.version, self.passes, self.fails = instance, "1", True, False
        self.cursor: Any = None

        @dg.asset(check_specs=[dg.AssetCheckSpec("schema", asset="source", blocking=True)])
        def source():
            checked = dg.AssetCheckResult(check_name="schema", passed=self.passes)
            return dg.MaterializeResult(data_version=dg.DataVersion(self.version), check_results=[checked])

        @dg.asset(deps=[source], automation_condition=WHEN_NEW)
        def table() -> None:
            if self.fails:
                raise dg.Failure("as a test says")

        self.source, self.table = source, table

    def bring(self, version: str, *, passes: bool = True) -> None:
        self.version, self.passes = version, passes
        dg.materialize([self.source], instance=self.instance, raise_on_error=passes)

    def make(self, *, fails: bool = False) -> None:
        self.fails = fails
        dg.materialize([self.table], selection=[self.table], instance=self.instance, raise_on_error=False)

    def requested(self) -> int:
        definitions = dg.Definitions(assets=[self.source, self.table])
        result = evaluate(definitions, self.instance, self.cursor)
        self.cursor = result.cursor
        return result.total_requested


def test_what_is_new_is_made_once_and_the_same_again_is_not(instance):
    source = Source(instance)
    source.bring("1")
    source.make()
    assert source.requested() == 0
    source.bring("1")
    assert source.requested() == 0, "the same content came again"
    source.bring("2")
    assert source.requested() == 1
    assert source.requested() == 0, "it was requested"
    source.make()
    assert source.requested() == 0


def test_what_did_not_pass_its_checks_waits_until_it_does(instance):
    source = Source(instance)
    source.bring("1")
    source.make()
    source.requested()
    source.bring("2", passes=False)
    assert source.requested() == 0
    source.bring("2")
    assert source.requested() == 1


def test_a_run_that_failed_is_tried_once_more(instance):
    source = Source(instance)
    source.bring("1")
    source.make()
    source.requested()
    source.bring("2")
    assert source.requested() == 1
    source.make(fails=True)
    assert source.requested() == 1
    source.make(fails=True)
    assert source.requested() == 0


def test_every_table_that_costs_no_money_is_made_so_and_no_other():
    specs = {spec.key.to_user_string(): spec for spec in build_definitions().resolve_all_asset_specs()}
    assert {name for name, spec in specs.items() if spec.automation_condition is not None} == FREE


def test_settings_that_cannot_be_read_skip_a_tick_and_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path))
    (tmp_path / "gongqing.toml").write_text("[llm]\nschedule_budgget = 5\n", encoding="utf-8")
    with dg.build_schedule_context() as context:
        for one in schedules.schedules:
            ticked = one.evaluate_tick(context)
            assert "schedule_budgget" in str(ticked.skip_message), one.name
            assert not ticked.run_requests


@pytest.mark.slow
def test_a_set_that_is_imported_makes_what_follows_from_it_though_most_days_were_never_crawled(
    sample_home: Path, tmp_path: Path, instance, monkeypatch
):
    shutil.copytree(sample_home, tmp_path / "home", dirs_exist_ok=True)
    home = HomeResource(path=str(tmp_path / "home"))
    definitions = build_definitions({"home": home})
    definitions.resolve_job_def("refresh_free_tables").execute_in_process(instance=instance)
    first = evaluate(definitions, instance)
    posts = ROOT / "samples" / "posts.jsonl"
    few = tmp_path / "few.jsonl"
    few.write_text("\n".join(posts.read_text(encoding="utf-8").splitlines()[:3]), encoding="utf-8")
    instance.add_dynamic_partitions("data_set", ["few"])
    config = {"reader": "mapped", "file": str(few), "mapping": str(posts.with_suffix(".toml"))}
    dg.materialize(
        [assets.imports[0]],
        instance=instance,
        partition_key="few",
        resources={"home": home},
        run_config={"ops": {"imported_posts": {"config": config}}},
    )
    second = evaluate(definitions, instance, first.cursor)
    assert first.total_requested == 0
    wanted = {key.to_user_string() for key in map(dg.AssetKey, FREE) if second.get_num_requested(key)}
    assert {"clean_posts", "unique_posts", "grpo_coe"} <= wanted
    assert "clean_dialogues" not in wanted
