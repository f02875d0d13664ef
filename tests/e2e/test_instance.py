"""Dagster's state goes to `.dagster/` of the home, from whatever folder a command is started in."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
import yaml

from pipelines.defs.instance import ensure_configured, instance
from pipelines.errors import SettingsError
from pipelines.settings import ROOT

ASK = "import dagster as dg; dg.DagsterInstance.get().get_runs()"


def _state(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


@pytest.mark.parametrize("start_in", ["the home", "elsewhere"])
def test_the_committed_dagster_yaml_keeps_its_state_in_the_home(start_in, tmp_path):
    """The repository's own file, as `DAGSTER_HOME=$PWD dagster …` reads it; the home is moved so as not to litter."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    environment = {**os.environ, "DAGSTER_HOME": str(ROOT), "GONGQING_HOME": str(home)}
    started = home if start_in == "the home" else elsewhere
    subprocess.run([sys.executable, "-c", ASK], cwd=started, env=environment, check=True, capture_output=True)
    assert "storage" in _state(home / ".dagster")
    assert _state(elsewhere) == set()


def test_another_home_gets_a_dagster_yaml_with_absolute_paths(tmp_path):
    ensure_configured(tmp_path)
    config = yaml.safe_load((tmp_path / "dagster.yaml").read_text(encoding="utf-8"))
    committed = yaml.safe_load((ROOT / "dagster.yaml").read_text(encoding="utf-8"))
    folders = [
        config["storage"]["sqlite"]["base_dir"],
        config["local_artifact_storage"]["config"]["base_dir"],
        config["compute_logs"]["config"]["base_dir"],
    ]
    assert len(set(folders)) == 3
    assert all(folder.startswith(str(tmp_path / ".dagster")) for folder in folders)
    places = {"storage", "local_artifact_storage", "compute_logs"}
    assert {key: config[key] for key in config if key not in places} == {
        key: committed[key] for key in committed if key not in places
    }


def test_a_dagster_yaml_that_is_there_is_left_alone(tmp_path):
    ensure_configured(tmp_path)
    with (tmp_path / "dagster.yaml").open("a", encoding="utf-8") as file:
        file.write("code_servers: {local_startup_timeout: 120}\n")
    before = (tmp_path / "dagster.yaml").read_text(encoding="utf-8")
    ensure_configured(tmp_path)
    assert (tmp_path / "dagster.yaml").read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    "content",
    ["", "- a list\n", "half: [", "telemetry: {enabled: false}\n", "storage: {sqlite: {base_dir: /elsewhere}}\n"],
)
def test_a_dagster_yaml_that_would_keep_state_elsewhere_is_refused(content, tmp_path):
    """Cut short, or of a home that was moved."""
    (tmp_path / "dagster.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match="remove the file"):
        instance(tmp_path)


@pytest.mark.drill("damage")
def test_the_dagster_yaml_of_a_home_that_was_moved_is_refused(tmp_path):
    (tmp_path / "old").mkdir()
    ensure_configured(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    with pytest.raises(SettingsError, match="remove the file"):
        ensure_configured(tmp_path / "new")


def test_runs_may_be_kept_in_a_database(tmp_path):
    ensure_configured(tmp_path)
    config = yaml.safe_load((tmp_path / "dagster.yaml").read_text(encoding="utf-8"))
    config["storage"] = {"postgres": {"postgres_url": {"env": "DAGSTER_PG_URL"}}}
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    ensure_configured(tmp_path)


@pytest.mark.drill("race")
def test_several_processes_open_a_new_home_at_once(tmp_path):
    """Dagster's own migrations know no lock."""
    code = f"from pathlib import Path; from pipelines.defs.instance import instance; instance(Path({str(tmp_path)!r}))"
    opened = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(4)]
    for one in opened:
        assert one.wait(120) == 0, one.stderr.read().decode()
        one.stderr.close()


def test_the_instance_of_a_home_is_a_standing_one(tmp_path):
    @dg.asset
    def something() -> None: ...

    with instance(tmp_path) as standing:
        dg.materialize([something], instance=standing)
    with instance(tmp_path) as standing:
        assert standing.get_runs_count() == 1
        assert not standing.telemetry_enabled
