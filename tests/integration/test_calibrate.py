"""`gongqing calibrate`: what it prints and keeps, and what a release makes of it."""

import json
import shutil

import polars as pl
import pytest
from planted_home import planted_home
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.core.files import sha256_of
from pipelines.errors import ReleaseRefused, RequestError, UnknownName
from pipelines.settings import ROOT
from pipelines.store.releases import Releases
from pipelines.store.store import Store
from schemas.labels import CALIBRATED

SECRET = "糯米团子"
LINES = (
    {"id": "1", "row_id": "sample:p001", "labels": [], "spans": []},
    {"id": "2", "text": "我叫王小明，最近睡不好。", "labels": [], "spans": [{"kind": "name", "text": "王小明"}]},
    {"id": "3", "text": "我不想活了，想自杀。", "labels": ["self_harm"], "spans": []},
    {"id": "4", "text": f"{SECRET}打我，我很怕。", "labels": ["abuse"], "spans": [{"kind": "name", "text": SECRET}]},
)


def _run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="module")
def made(sample_home, released_home, tmp_path_factory):
    """A home whose tables people made, and no model. Read only."""
    return planted_home(sample_home, tmp_path_factory.mktemp("written"), provider="written", read=released_home)


@pytest.fixture
def home(made, tmp_path, monkeypatch):
    """A copy of it."""
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path / "home"))
    return shutil.copytree(made, tmp_path / "home")


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "gold.jsonl"
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in LINES), encoding="utf-8")
    return path


def _kept(home):
    return Store(home / "data").read("calibrations").collect()


def test_it_prints_and_keeps_figures_and_no_word_of_a_post(home, gold):
    ran = _run("calibrate", "personal_data", "--gold", str(gold))
    assert ran.exit_code == 0, ran.output
    assert "personal_data on 4 posts of gold.jsonl" in ran.output
    assert SECRET not in ran.output
    row = _kept(home).row(by_predicate=pl.col("kind") == "name", named=True)
    assert (row["posts"], row["labelled"], row["found"], row["right"], row["missed"]) == (4, 2, 1, 1, 1)
    assert (row["precision"], row["recall"], row["readers"], row["kappa"]) == (1.0, 0.5, 1, None)
    assert (row["gold"], row["gold_sha256"]) == ("gold.jsonl", sha256_of(gold))
    assert SECRET not in json.dumps(_kept(home).to_dicts(), ensure_ascii=False, default=str)
    assert "calibrations" in _run("tables").output
    assert _run("show", "calibrations").exit_code == 0
    assert _run("doctor").exit_code == 0


def test_the_words_are_shown_to_who_asks_on_a_terminal(home, gold):
    shown = _run("calibrate", "personal_data", "--gold", str(gold), "--show", "3").output
    assert SECRET in shown
    assert "missed" in shown
    assert isinstance(_run("calibrate", "risk", "--gold", str(gold), "--show", "3", "--json").exception, RequestError)


def test_a_stage_takes_the_place_of_its_earlier_figures_of_the_file_and_the_same_ones_change_nothing(home, gold):
    store = Store(home / "data")
    for stage in ("personal_data", "risk"):
        assert _run("calibrate", stage, "--gold", str(gold)).exit_code == 0
    before = store.version("calibrations")
    assert set(_kept(home)["stage"]) == {"personal_data", "risk"}
    assert json.loads(_run("calibrate", "risk", "--gold", str(gold), "--json").stdout)[0]["stage"] == "risk"
    assert store.version("calibrations").version == before.version, "nothing is new"
    gold.write_text("\n".join(gold.read_text(encoding="utf-8").splitlines()[:3]), encoding="utf-8")
    other = gold.rename(gold.with_name("other.jsonl"))
    assert _run("calibrate", "risk", "--gold", str(other)).exit_code == 0
    other.rename(gold)
    assert _run("calibrate", "risk", "--gold", str(gold)).exit_code == 0
    assert set(_kept(home).select("stage", "gold", "posts").rows()) == {
        ("personal_data", "gold.jsonl", 4),
        ("risk", "gold.jsonl", 3),
        ("risk", "other.jsonl", 3),
    }


def test_every_stage_can_be_measured_by_the_samples(home):
    for stage in CALIBRATED:
        rows = json.loads(_run("calibrate", stage, "--gold", str(ROOT / "samples" / "gold.jsonl"), "--json").stdout)
        assert [row["kind"] for row in rows] == list(CALIBRATED[stage])
        assert {(row["posts"], row["readers"]) for row in rows} == {(12, 2)}
        assert sum(row["found"] for row in rows) > 0
        assert [row["kappa"] for row in rows if row["kappa"] is not None] != [] or stage == "relevance"


def test_another_stage_is_refused(home, gold):
    assert isinstance(_run("calibrate", "risks", "--gold", str(gold)).exception, UnknownName)


def _release(name: str):
    return _run("release", name, "--allow", "not_from_a_model")


def test_a_floor_refuses_a_release_until_it_is_measured_and_the_card_says_it(home, gold, tmp_path):
    (home / "gongqing.toml").write_text("[release.floors]\npersonal_data.name.precision = 0.9\n")
    refused = _release("v1")
    assert isinstance(refused.exception, ReleaseRefused)
    assert "personal_data.name.precision was not measured" in " ".join(str(refused.exception).split())
    assert "gongqing calibrate personal_data --gold FILE" in " ".join(refused.output.split())

    assert _run("calibrate", "personal_data", "--gold", str(gold)).exit_code == 0
    made = _release("v1")
    assert made.exit_code == 0, made.output
    release = Releases(home).read("v1")
    assert "calibrations" in release.pins
    assert [one.kind for one in release.calibrations] == ["name", "others", "contact", "any"]
    assert _run("export", "folder", str(tmp_path / "out")).exit_code == 0
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    line = "| personal data, names | 1.00 [.21, 1.00] | .50 [.09, .91] | – | – | 4 | `gold.jsonl` |\n"
    assert card.count(line) == 2, "in both languages"
    assert "personal data, contact data" not in card, "nothing to say of"

    (home / "gongqing.toml").write_text("[release.floors]\npersonal_data.name.recall = 0.9\n")
    refused = _release("v2")
    assert "personal_data.name.recall is 0.500 by gold.jsonl (4 posts)" in str(refused.exception)
