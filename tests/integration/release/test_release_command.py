"""`gongqing release`, `releases` and `diff` of releases, as they are typed."""

import json

import pytest
from planted_home import planted_home
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.errors import DamagedRelease, ReleaseRefused
from pipelines.store.releases import Releases


def _run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def home(sample_home, released_home, tmp_path, monkeypatch):
    """A home whose tables people made, and no model."""
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path / "home"))
    return planted_home(sample_home, tmp_path / "home", provider="written", read=released_home)


def test_from_a_refusal_to_a_changelog_and_a_damaged_release_hides_no_other(home):
    assert "no releases yet" in _run("releases").output

    refused = _run("release", "v1")
    assert isinstance(refused.exception, ReleaseRefused)  # main() makes it a message, and exit code 1
    assert "not_from_a_model" in refused.output
    assert "sample:d01#1" in refused.output
    told = json.loads(_run("release", "v1", "--json").stdout)
    (rules,) = [one for one in told if one["severity"] == "refuse"]
    assert rules["check"] == "not_from_a_model"
    assert len(rules["examples"]) == rules["count"] - 14  # posts that stand in both sets
    assert f"and {len(rules['examples']) - 10} more: --json" in " ".join(refused.output.split())

    made = _run("release", "v1", "--allow", "not_from_a_model")
    assert made.exit_code == 0
    assert "allowed" in made.output
    assert Releases(home).read("v1").allowed == ["not_from_a_model"]
    assert "v1: " in made.output
    assert "it was there already" in _run("release", "v1", "--allow", "not_from_a_model").output
    assert _run("release", "v2", "--allow", "not_from_a_model", "--json").exit_code == 0

    listed = json.loads(_run("releases", "--json").stdout)
    assert [(one["name"], one["current"]) for one in listed] == [("v1", False), ("v2", True)]
    assert listed[0]["content"] == listed[1]["content"]
    assert "v1 is current" in _run("releases", "promote", "v1").output

    assert "Nothing changed." in _run("diff", "v1", "v2").output
    assert json.loads(_run("diff", "v1", "v2", "--json").stdout)["topics"] == {}

    (home / "releases" / "v0").mkdir()
    (home / "releases" / "v0" / "manifest.json").write_text("{}")
    ran = _run("releases")
    assert "v1" in ran.output
    assert isinstance(ran.exception, DamagedRelease)
