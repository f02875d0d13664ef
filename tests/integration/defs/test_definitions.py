"""The code location as a whole: it loads, and its graph and schedules change only on purpose (snapshots)."""

from pathlib import Path

import dagster as dg
import pytest

from pipelines.definitions import build_definitions
from pipelines.defs import evaluations, releases, training
from pipelines.flow.stages import STAGES

FREE = ("evaluation_data", "evaluation_people")  # figures of what is there
# Models are asked both before rounds are sampled and about these.
BACKWARDS = {"sampled_turns of 05_sample before cer_candidates"}


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


@pytest.mark.drill("web UI")
def test_what_trains_publishes_crawls_or_asks_models_starts_only_where_its_configuration_says_how(definitions):
    """Who materialises everything gives none: each of these has something to be named, so that Dagster refuses it."""
    names = [job.name for job in definitions.get_repository_def().get_all_jobs()]
    begin = ("training_", "crawl_", "import_", "publish_release", "make_release", "evaluation_")
    costly = [name for name in names if name.startswith(begin) and name not in FREE]
    assert {"training_compeer_cer", "crawl_xinli001", "publish_release", "evaluation_sage"} <= set(costly)
    for name in costly:
        with pytest.raises(dg.DagsterInvalidConfigError, match="Missing required config"):
            dg.validate_run_config(definitions.resolve_job_def(name), {})


def test_groups_stand_in_the_order_of_the_flow(definitions):
    """The web UI sorts them by name; every parent is of a group before, or of the same."""
    graph = definitions.get_repository_def().asset_graph
    nodes = [graph.get(key) for key in graph.get_all_asset_keys()]
    later = {
        f"{parent.to_user_string()} of {graph.get(parent).group_name} before {node.key.to_user_string()}"
        for node in nodes
        for parent in node.parent_keys
        if graph.get(parent).group_name > node.group_name
    }
    assert later == BACKWARDS
    assert all(node.group_name[:2].isdigit() for node in nodes)


def test_papers_are_named_where_a_letter_stands_for_one(definitions):
    specs = {spec.key.to_user_string(): spec for spec in definitions.resolve_all_asset_specs()}
    assert specs["coe_chains"].description.endswith("Empathy-R1.")
    assert "M: MindChat-R0, E: Empathy-R1" in specs["clean_posts"].description
    assert "COMPEER" not in specs["rewritten_dialogues"].description, "its P, R and D are variants"
    assert all(Path(spec.metadata["docs"].path).is_file() for spec in specs.values() if "docs" in spec.metadata)


def test_every_asset_names_its_owners_and_leads_to_the_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "gongqing.toml").write_text('owners = ["team:data", "anna@example.org"]\n')
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path))
    graph = build_definitions().resolve_asset_graph()
    nodes = [graph.get(key) for key in graph.get_all_asset_keys()]
    assert {tuple(node.owners) for node in nodes} == {("team:data", "anna@example.org")}
    linked = {node.key.to_user_string() for node in nodes if "report" in node.metadata}
    assert linked == {node.key.to_user_string() for node in nodes} - {"report"}


def test_settings_that_cannot_be_read_leave_the_assets_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "gongqing.toml").write_text("owners = [")
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path))
    assert build_definitions().resolve_asset_graph().has(dg.AssetKey("report"))
