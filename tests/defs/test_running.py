"""Running assets on the standing instance of a home."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.defs.assets import data_sets
from pipelines.defs.instance import instance
from pipelines.defs.running import run_import, run_stage
from pipelines.errors import RequestError, UnreadableFile
from pipelines.imports import make_author_key
from pipelines.settings import ROOT
from pipelines.stages import STAGES
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
    run_stage(tmp_path, STAGES[0])
    with instance(tmp_path) as standing:
        assert [run.tags["gongqing/command"] for run in standing.get_runs()] == ["refresh", "import"]
        assert all(run.is_success for run in standing.get_runs())
    assert _partitions(tmp_path) == ["sample"]
    assert Store(tmp_path / "data").version("clean_posts").rows


def test_a_failed_import_raises_our_error_and_leaves_no_partition(tmp_path):
    with pytest.raises(UnreadableFile, match="where: "):
        run_import(tmp_path, "imported_posts", "psyqa", "psyqa", ROOT / "README.md", None)
    with pytest.raises(RequestError, match="remedy: "):
        run_import(tmp_path, "imported_posts", "Not A Name", "psyqa", ROOT / "README.md", None)
    assert _partitions(tmp_path) == []


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


def test_a_lost_database_finds_its_partitions_again(tmp_path):
    _import(tmp_path)
    (tmp_path / ".dagster").rename(tmp_path / "lost")
    run_stage(tmp_path, STAGES[0])
    assert _partitions(tmp_path) == ["sample"]
