"""The code location as a whole: it loads, and its graph and schedules change only on purpose (snapshots)."""

import dagster as dg
import pytest

from pipelines.definitions import build_definitions
from pipelines.defs import releases, training
from pipelines.defs.resources import HomeResource
from pipelines.flow.stages import STAGES


def test_everything_loads():
    dg.Definitions.validate_loadable(build_definitions())


def test_the_asset_graph(snapshot):
    graph = build_definitions().get_repository_def().asset_graph
    described = {
        node.key.to_user_string(): {
            "group": node.group_name,
            "parents": sorted(parent.to_user_string() for parent in node.parent_keys),
            "partitions": getattr(node.partitions_def, "name", None),
            "checks": sorted(
                f"{key.name}{' (blocking)' if graph.get_check_spec(key).blocking else ''}" for key in node.check_keys
            ),
        }
        for node in (graph.get(key) for key in sorted(graph.get_all_asset_keys()))
    }
    assert described == snapshot


def test_the_schedules(snapshot):
    described = {
        schedule.name: {
            "cron": schedule.cron_schedule,
            "timezone": schedule.execution_timezone,
            "job": schedule.job_name,
            "at first": schedule.default_status.value,
        }
        for schedule in build_definitions().get_repository_def().schedule_defs
    }
    assert described == snapshot


def test_steps_run_in_one_process_by_default():
    job = build_definitions().resolve_job_def("refresh_free_tables")
    assert job.executor_def is dg.in_process_executor


def test_resources_can_be_replaced():
    replaced = HomeResource(path="/nowhere")
    assert build_definitions(resources={"home": replaced}).resources["home"] == replaced


@pytest.mark.drill("web UI")
@pytest.mark.parametrize("config", [{"path": "/tmp/evil"}, {"_path": "/tmp/evil"}, "/tmp/evil"])
def test_no_run_configuration_names_another_home(config):
    job = build_definitions().resolve_job_def("refresh_free_tables")
    dg.validate_run_config(job, {})
    with pytest.raises(dg.DagsterInvalidConfigError):
        dg.validate_run_config(job, {"resources": {"home": {"config": config}}})


def test_every_column_of_every_asset_is_described():
    assets = build_definitions().get_repository_def().assets_defs_by_key.values()
    specs = [spec for asset in assets for spec in asset.specs]
    assert specs
    for spec in specs:
        # A release and a run of training are no tables, and say what they hold when they are made.
        if spec.group_name in {releases.GROUP, training.GROUP}:
            assert spec.description
            continue
        columns = spec.metadata["dagster/column_schema"].columns
        assert columns
        assert all(column.description for column in columns), spec.key


def test_the_schedule_refreshes_every_table_that_a_stage_makes():
    selected = build_definitions().resolve_job_def("refresh_free_tables").asset_layer.executable_asset_keys
    assert {key.to_user_string() for key in selected} == {table for stage in STAGES for table in stage.tables}
