"""Running assets on the standing instance of a home."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import dagster as dg
import pytest
from killing import IMPORT_POSTS, Command
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.defs.assets import data_sets
from pipelines.defs.instance import instance
from pipelines.defs.running import run_import, run_stages
from pipelines.errors import RequestError, UnreadableFile
from pipelines.flow.stages import STAGES
from pipelines.settings import ROOT, make_author_key
from pipelines.store import Store

POSTS = ROOT / "samples" / "posts.jsonl"


def _partitions(home: Path) -> list[str]:
    with instance(home) as standing:
        return list(standing.get_dynamic_partitions(data_sets.name))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With one data set, imported by this process."""
    make_author_key(tmp_path)
    run_import(tmp_path, "imported_posts", "sample", "mapped", POSTS, POSTS.with_suffix(".toml"))
    return tmp_path


@pytest.mark.drill("damage")
def test_what_the_command_line_runs_is_in_the_web_ui_and_a_lost_database_finds_its_partitions_again(home):
    run_stages(home, None, STAGES[:1])
    with instance(home) as standing:
        assert [run.tags["gongqing/command"] for run in standing.get_runs()] == ["refresh", "import"]
        assert all(run.is_success for run in standing.get_runs())
        assert not standing.telemetry_enabled
    assert _partitions(home) == ["sample"]
    assert Store(home / "data").version("clean_posts").rows
    (home / ".dagster").rename(home / "lost")
    run_stages(home, None, STAGES[:1])
    assert _partitions(home) == ["sample"]


def test_a_failed_import_raises_our_error_and_leaves_no_partition(tmp_path):
    for name, error, words in (("psyqa", UnreadableFile, "where: "), ("Not A Name", RequestError, "hint: ")):
        with pytest.raises(error, match=words):
            run_import(tmp_path, "imported_posts", name, "psyqa", ROOT / "README.md", None)
    assert _partitions(tmp_path) == []


@pytest.mark.drill("race")
def test_several_imports_at_once(tmp_path):
    """Processes on a new home, one data set each: all of them are there, and Dagster lists them."""
    make_author_key(tmp_path)
    names = [f"set{number}" for number in range(3)]
    with ExitStack() as running:
        commands = [running.enter_context(Command(tmp_path, *IMPORT_POSTS[:-1], name)) for name in names]
        assert [command.wait() for command in commands] == [0, 0, 0], commands[0].printed
    assert sorted(_partitions(tmp_path)) == names
    assert Store(tmp_path / "data").partitions("imported_posts") == names


@pytest.fixture
def dead() -> dict[str, str]:
    """The tags of a run whose process has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return {"gongqing/process": f"{socket.gethostname()}:{process.pid}"}


@pytest.mark.drill("kill")
def test_runs_of_killed_commands_are_closed_by_the_next_one_whatever_they_were_about_to_do(tmp_path, dead, request):
    """Runs that somebody else owns stay: of the web UI, of another machine, of the living."""
    of_dead = dead | {"gongqing/command": "import"}
    living = f"{socket.gethostname()}:{os.getpid()}"
    begun = {
        "killed before it began": (dg.DagsterRunStatus.NOT_STARTED, of_dead),
        "killed as it began": (dg.DagsterRunStatus.STARTING, of_dead),
        "killed at work": (dg.DagsterRunStatus.STARTED, of_dead),
        "begun by the web UI": (dg.DagsterRunStatus.NOT_STARTED, {}),
        "of a living command": (dg.DagsterRunStatus.NOT_STARTED, {"gongqing/process": living}),
        "of another machine": (dg.DagsterRunStatus.STARTED, {"gongqing/process": f"not-{dead['gongqing/process']}"}),
    }
    with instance(tmp_path) as standing:
        ids = {}
        for name, (status, tags) in begun.items():
            ids[name] = standing.create_run_for_job(_nothing, status=status, tags=tags).run_id
        killed = ids["killed at work"]
        ids["started again in the web UI"] = standing.create_run_for_job(
            _nothing, status=dg.DagsterRunStatus.STARTING, tags=of_dead, parent_run_id=killed, root_run_id=killed
        ).run_id
    request.getfixturevalue("home")
    with instance(tmp_path) as standing:
        closed = {name for name, run_id in ids.items() if standing.get_run_by_id(run_id).is_failure_or_canceled}
    assert closed == {"killed before it began", "killed as it began", "killed at work"}


@pytest.mark.drill("kill")
def test_a_run_killed_at_its_very_end_is_closed_though_nothing_is_left_to_do(home, dead, monkeypatch):
    run_stages(home, None, STAGES[:1])
    with instance(home) as standing:
        run = standing.create_run_for_job(_nothing, status=dg.DagsterRunStatus.STARTED, tags=dead).run_id
    note = home / ".dagster" / "under_way" / dead["gongqing/process"].rpartition(":")[2]
    note.touch()
    monkeypatch.setenv("GONGQING_HOME", str(home))
    refreshed = CliRunner().invoke(app, ["refresh", "--select", "clean_posts"])
    assert "everything is up to date" in refreshed.stdout
    with instance(home) as standing:
        assert standing.get_run_by_id(run).is_failure_or_canceled
    assert not note.exists()


@dg.job
def _nothing() -> None:
    """A job of no steps."""
