"""Dagster's state goes to `.dagster/` of the home, from whatever folder a command is started in."""

import os
import subprocess
import sys

import pytest
import yaml

from pipelines.defs.instance import ensure_configured, instance
from pipelines.errors import SettingsError
from pipelines.settings import ROOT

ASK = "import dagster as dg; dg.DagsterInstance.get().get_runs()"


def test_the_committed_dagster_yaml_keeps_its_state_in_the_home(tmp_path):
    """The repository's own file, as `DAGSTER_HOME=$PWD dagster …` reads it; the home is moved so as not to litter."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    environment = {**os.environ, "DAGSTER_HOME": str(ROOT), "GONGQING_HOME": str(home)}
    subprocess.run([sys.executable, "-c", ASK], cwd=elsewhere, env=environment, check=True, capture_output=True)
    assert (home / ".dagster" / "storage").exists()
    assert list(elsewhere.iterdir()) == []


def test_another_home_gets_a_dagster_yaml_with_absolute_paths(tmp_path):
    ensure_configured(tmp_path)
    config = yaml.safe_load((tmp_path / "dagster.yaml").read_text(encoding="utf-8"))
    committed = yaml.safe_load((ROOT / "dagster.yaml").read_text(encoding="utf-8"))
    places = {"storage": config["storage"]["custom"]}
    places |= {name: config[name] for name in ("local_artifact_storage", "compute_logs")}
    folders = {place["config"]["base_dir"] for place in places.values()}
    assert len({folder for folder in folders if folder.startswith(str(tmp_path / ".dagster"))}) == 3
    assert config.keys() == committed.keys()
    assert [key for key in config.keys() - places.keys() if config[key] != committed[key]] == []


def test_a_dagster_yaml_that_is_there_is_left_alone_and_may_keep_runs_in_a_database(tmp_path):
    ensure_configured(tmp_path)
    path = tmp_path / "dagster.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config["storage"] = {"postgres": {"postgres_url": {"env": "DAGSTER_PG_URL"}}}
    path.write_text(before := yaml.safe_dump(config), encoding="utf-8")
    ensure_configured(tmp_path)
    assert path.read_text(encoding="utf-8") == before


@pytest.mark.drill("damage")
def test_a_dagster_yaml_that_would_keep_state_elsewhere_is_refused(tmp_path):
    """Cut short, or of a home that was moved."""
    (tmp_path / "old").mkdir()
    ensure_configured(tmp_path / "old")
    moved = (tmp_path / "old" / "dagster.yaml").read_text(encoding="utf-8")
    for content in ("", "- a list\n", "half: [", "storage: {sqlite: {base_dir: /elsewhere}}\n", moved):
        (tmp_path / "dagster.yaml").write_text(content, encoding="utf-8")
        with pytest.raises(SettingsError, match="remove the file"):
            instance(tmp_path)


@pytest.mark.drill("race")
def test_several_processes_open_a_new_home_at_once(tmp_path):
    """Dagster's own migrations know no lock."""
    code = f"from pathlib import Path; from pipelines.defs.instance import instance; instance(Path({str(tmp_path)!r}))"
    opened = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [one.wait(120) for one in opened] == [0, 0, 0]
