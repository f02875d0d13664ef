"""The code location as a whole: it loads, and its graph and schedules change only on purpose (snapshots)."""

import dagster as dg
import pytest

from pipelines.definitions import build_definitions
from pipelines.defs import evaluations, releases, training
from pipelines.flow.stages import STAGES


@pytest.fixture(scope="module")
def definitions() -> dg.Definitions:
    return build_definitions()


def test_the_asset_graph(definitions, snapshot):
    graph = definitions.get_repository_def().asset_graph
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


def test_the_schedules(definitions, snapshot):
    described = {
        one.name: {
            **{"cron": one.cron_schedule, "timezone": one.execution_timezone},
            **{"job": one.job_name, "at first": one.default_status.value},
        }
        for one in definitions.get_repository_def().schedule_defs
    }
    assert described == snapshot


@pytest.mark.drill("web UI")
def test_a_job_runs_in_one_process_refreshes_every_table_and_no_configuration_names_another_home(definitions):
    job = definitions.resolve_job_def("refresh_free_tables")
    assert job.executor_def is dg.in_process_executor
    selected = {key.to_user_string() for key in job.asset_layer.executable_asset_keys}
    assert selected == {table for stage in STAGES for table in stage.tables}
    dg.validate_run_config(job, {})
    for config in ({"path": "/tmp/evil"}, {"_path": "/tmp/evil"}, "/tmp/evil"):
        with pytest.raises(dg.DagsterInvalidConfigError):
            dg.validate_run_config(job, {"resources": {"home": {"config": config}}})


def test_every_asset_is_described_and_every_table_shows_its_columns(definitions):
    specs = [spec for asset in definitions.get_repository_def().assets_defs_by_key.values() for spec in asset.specs]
    tables = [spec for spec in specs if spec.group_name not in {releases.GROUP, training.GROUP, evaluations.GROUP}]
    assert 0 < len(tables) < len(specs)
    assert all(spec.description for spec in specs)
    assert all(spec.metadata["dagster/column_schema"].columns for spec in tables)
