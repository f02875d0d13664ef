"""`gongqing erase` on a small home."""

import json

import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.errors import RequestError
from pipelines.store.store import Store


@pytest.fixture(autouse=True)
def _in_home(home, monkeypatch) -> None:
    monkeypatch.setenv("GONGQING_HOME", str(home))


def run(*arguments: str) -> str:
    ran = CliRunner().invoke(app, ["erase", *arguments], catch_exceptions=False)
    assert ran.exit_code == 0
    return ran.output


def test_rows_are_erased_and_the_output_names_what_each_place_lost(home):
    output = run("s:a", "s:x")
    assert "still on the Hub, of release v1" in output
    assert "forgotten: 3 calls of models" in output
    assert "imported_posts/s@" in output
    assert Store(home / "data").read("imported_posts").collect()["post_id"].to_list() == ["s:b"]
    assert run("--resume") == "no erasure is unfinished\n"


def test_a_dry_run_names_the_places_and_erases_nothing(home):
    before = {path: path.read_bytes() for path in home.rglob("*.parquet")}
    output = run("--author", "u_00000000000000aa", "--dry-run")
    assert "imported_posts/s@" in output
    assert "nothing was erased" in output
    assert {path: path.read_bytes() for path in home.rglob("*.parquet")} == before != {}
    assert list((home / "erasures").glob("*.plan")) == []


def test_a_file_goes_with_all_its_rows_and_json_is_the_receipt(home):
    [receipt] = json.loads(run("--file", "s.json", "--json"))
    assert receipt == json.loads(next((home / "erasures").glob("*.json")).read_bytes())
    store = Store(home / "data")
    assert store.read("imported_posts").collect().is_empty()
    assert store.read("imported_dialogues").collect().height == 2, "they came from another file"


def test_resume_takes_no_rows(home):
    with pytest.raises(RequestError, match="--resume finishes"):
        run("s:a", "--resume")
