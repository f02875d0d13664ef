"""A home whose tables and releases lie in a bucket, from the import to the erasure, by the commands of a user."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.operations.doctor import examine
from pipelines.release.publish.fetch import fetch
from pipelines.settings import ROOT
from pipelines.store import Store
from pipelines.store.releases import Releases

POSTS = ROOT / "samples" / "posts.jsonl"
DIALOGUES = ROOT / "samples" / "dialogues.jsonl"


def done(*arguments: str) -> str:
    ran = CliRunner().invoke(app, list(arguments))
    assert ran.exit_code == 0, f"{arguments}\n{ran.output}\n{ran.exception!r}"
    return ran.output


@pytest.mark.slow
def test_a_home_in_a_bucket_is_used_as_any_other(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("GONGQING_AUTHOR_KEY", "a key for the tests alone")
    for path, name in ((POSTS, "posts"), (DIALOGUES, "dialogues")):
        done("import", "mapped", str(path), "--mapping", str(path.with_suffix(".toml")), "--as", name)
    done("refresh")  # what needs a model waits
    tables = {one["table"]: one["rows"] for one in json.loads(done("tables", "--json"))}
    assert tables["grpo_ecot"] > 0
    assert len(json.loads(done("show", "clean_posts", "-n", "2", "--json"))) == 2

    # Nothing of a table lies in the home; what lies there is scratch.
    kept = [path for name in ("data", "releases") for path in (home / name).rglob("*") if path.is_file()]
    assert {path.name for path in kept} <= {"alone", "uploading"}

    done("release", "v1", "--allow", "not_from_a_model")
    done("export", "folder", str(tmp_path / "given"))
    shards = sorted((tmp_path / "given").glob("grpo_ecot/*.parquet"))
    assert pl.read_parquet(shards, hive_partitioning=False).height == tables["grpo_ecot"]
    done("report")
    assert [one for one in examine(home) if one.state == "broken"] == []

    given = tmp_path / "given"
    api = SimpleNamespace(
        dataset_info=lambda _repo, revision: SimpleNamespace(sha="a" * 40),
        hf_hub_download=lambda _repo, path, local_dir, **_: (
            shutil.copytree(given, local_dir, dirs_exist_ok=True) / path
        ),
    )
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("GONGQING_STORAGE__URL", f"{bucket}/another-home")
        elsewhere.setattr("pipelines.release.publish.fetch.hub_client", lambda **_: api)
        fetched = fetch(Releases(tmp_path / "another"), "me/x")
        assert fetched.name == "v1"
        assert Releases(tmp_path / "another").frame("v1", "grpo_ecot").collect().height == tables["grpo_ecot"]
        assert list((tmp_path / "another" / "releases").rglob("*.parquet")) == [], "it is in the bucket"

    row = Store(home / "data").read("grpo_ecot").collect()["row_id"][0]
    post = row.split("/")[0]
    wrote = Store(home / "data").read("imported_posts").filter(post_id=post).collect()["description"].item()
    done("erase", post)
    store, releases = Store(home / "data"), Releases(home)
    for table in ("imported_posts", "clean_posts", "unique_posts"):
        assert post not in store.read(table).collect()["post_id"].to_list()
    assert row not in releases.frame("v1", "grpo_ecot").collect()["row_id"].to_list()
    assert releases.read("v1").erasures
    objects = {(one, key) for one in (store.storage, releases.storage) for key in one.files("") if "parquet" in key}
    assert len(objects) > 20
    rows = {key: pl.read_parquet(one.get(key), hive_partitioning=False).write_ndjson() for one, key in objects}
    assert [key for key, written in rows.items() if wrote[:20] in written] == []
    done("tables", "prune")
    assert [one for one in examine(home) if one.state == "broken"] == []
