"""What the command line runs stands on the web UI's timeline: under its job's name, and to be run again from there."""

from pathlib import Path

import dagster as dg
import pytest

from pipelines.definitions import build_definitions
from pipelines.defs.instance import instance
from pipelines.defs.running import run_import, run_stages
from pipelines.flow.stages import STAGES
from pipelines.settings import ROOT, make_author_key

POSTS = ROOT / "samples" / "posts.jsonl"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dg.DagsterRun]:
    """Of an import and a refresh, the earlier first."""
    home: Path = tmp_path_factory.mktemp("home")
    make_author_key(home)
    run_import(home, "imported_posts", "sample", "mapped", POSTS, POSTS.with_suffix(".toml"))
    run_stages(home, None, STAGES[:2])
    with instance(home) as opened:
        return [*opened.get_runs()][::-1]


def test_a_command_is_one_run_under_the_name_of_its_job(runs):
    assert [(run.job_name, run.tags["gongqing/command"]) for run in runs] == [
        ("import_posts", "import"),
        ("refresh_free_tables", "refresh"),
    ]
    assert all(run.is_success for run in runs)
    assert runs[0].tags["dagster/partition"] == "sample"
    assert {key.to_user_string() for key in runs[1].asset_selection} == {"clean_posts", "clean_dialogues"}


def test_the_timeline_knows_where_they_come_from(runs):
    """It leaves out a run without an origin in the code location that the web UI has loaded."""
    for run in runs:
        assert run.remote_job_origin.location_name == ROOT.name
        assert run.remote_job_origin.repository_origin.repository_name == build_definitions().get_repository_def().name


def test_each_can_be_started_again_with_the_configuration_that_it_had(runs):
    for run in runs:
        dg.validate_run_config(build_definitions().resolve_job_def(run.job_name), run.run_config)
