"""Running assets on the standing instance of a home."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
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


def _import(home: Path) -> None:
    make_author_key(home)
    run_import(home, "imported_posts", "sample", "mapped", POSTS, POSTS.with_suffix(".toml"))


def test_what_the_command_line_runs_is_in_the_web_ui(tmp_path):
    _import(tmp_path)
    run_stages(tmp_path, None, STAGES[:1])
    with instance(tmp_path) as standing:
        assert [run.tags["gongqing/command"] for run in standing.get_runs()] == ["refresh", "import"]
        assert all(run.is_success for run in standing.get_runs())
    assert _partitions(tmp_path) == ["sample"]
    assert Store(tmp_path / "data").version("clean_posts").rows


def test_a_failed_import_raises_our_error_and_leaves_no_partition(tmp_path):
    with pytest.raises(UnreadableFile, match="where: "):
        run_import(tmp_path, "imported_posts", "psyqa", "psyqa", ROOT / "README.md", None)
    with pytest.raises(RequestError, match="hint: "):
        run_import(tmp_path, "imported_posts", "Not A Name", "psyqa", ROOT / "README.md", None)
    assert _partitions(tmp_path) == []


@pytest.mark.drill("race")
def test_several_imports_at_once(tmp_path):
    """Five processes on a new home, one data set each: all of them are there, and Dagster lists them."""
    make_author_key(tmp_path)
    names = [f"set{number}" for number in range(5)]
    gongqing = Path(sys.executable).with_name("gongqing")
    mapped = ["import", "mapped", str(POSTS), "--mapping", str(POSTS.with_suffix(".toml")), "--as"]
    environment = {**os.environ, "GONGQING_HOME": str(tmp_path)}
    at_work = [
        subprocess.Popen([gongqing, *mapped, name], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for name in names
    ]
    for one in at_work:
        assert one.wait(180) == 0, one.stderr.read().decode()
        one.stderr.close()
    assert sorted(_partitions(tmp_path)) == names
    assert Store(tmp_path / "data").partitions("imported_posts") == names


@pytest.mark.drill("damage")
def test_a_lost_database_finds_its_partitions_again(tmp_path):
    _import(tmp_path)
    (tmp_path / ".dagster").rename(tmp_path / "lost")
    run_stages(tmp_path, None, STAGES[:1])
    assert _partitions(tmp_path) == ["sample"]


@pytest.mark.drill("kill")
def test_runs_of_killed_commands_are_closed_by_the_next_one_whatever_they_were_about_to_do(tmp_path):
    """Runs that somebody else owns stay: of the web UI, of another machine, of the living."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    here = socket.gethostname()
    of_dead = {"gongqing/process": f"{here}:{dead.pid}", "gongqing/command": "import"}
    begun = {
        "killed before it began": (dg.DagsterRunStatus.NOT_STARTED, of_dead),
        "killed as it began": (dg.DagsterRunStatus.STARTING, of_dead),
        "killed at work": (dg.DagsterRunStatus.STARTED, of_dead),
        "begun by the web UI": (dg.DagsterRunStatus.NOT_STARTED, {}),
        "of a living command": (dg.DagsterRunStatus.NOT_STARTED, {"gongqing/process": f"{here}:{os.getpid()}"}),
        "of another machine": (dg.DagsterRunStatus.STARTED, {"gongqing/process": f"not-{here}:{dead.pid}"}),
    }
    with instance(tmp_path) as standing:
        ids = {
            name: standing.create_run_for_job(_nothing, status=status, tags=tags).run_id
            for name, (status, tags) in begun.items()
        }
        killed = ids["killed at work"]
        ids["started again in the web UI"] = standing.create_run_for_job(
            _nothing, status=dg.DagsterRunStatus.STARTING, tags=of_dead, parent_run_id=killed, root_run_id=killed
        ).run_id
    _import(tmp_path)
    with instance(tmp_path) as standing:
        closed = {name for name, run_id in ids.items() if standing.get_run_by_id(run_id).is_failure_or_canceled}
    assert closed == {"killed before it began", "killed as it began", "killed at work"}


@pytest.mark.drill("kill")
def test_a_run_killed_at_its_very_end_is_closed_though_nothing_is_left_to_do(tmp_path, monkeypatch):
    _import(tmp_path)
    run_stages(tmp_path, None, STAGES[:1])
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with instance(tmp_path) as standing:
        tags = {"gongqing/process": f"{socket.gethostname()}:{dead.pid}"}
        run = standing.create_run_for_job(_nothing, status=dg.DagsterRunStatus.STARTED, tags=tags).run_id
    note = tmp_path / ".dagster" / "under_way" / str(dead.pid)
    note.touch()
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path))
    refreshed = CliRunner().invoke(app, ["refresh", "--select", "clean_posts"])
    assert "everything is up to date" in refreshed.stdout
    with instance(tmp_path) as standing:
        assert standing.get_run_by_id(run).is_failure_or_canceled
    assert not note.exists()


@dg.job
def _nothing() -> None:
    """A job of no steps."""
