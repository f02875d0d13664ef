"""A file becomes a partition; authors become pseudonyms."""

import json
import stat

import pytest
from sets_with_clips import AVAMERG, MESC, SAID

from pipelines.errors import RequestError
from pipelines.flow.refresh import refresh
from pipelines.ingest.import_file import import_file, target_table
from pipelines.settings import ROOT, Prompts, Settings, author_key, make_author_key
from pipelines.store import Store

POSTS = ROOT / "samples" / "posts.jsonl"
MAPPING = POSTS.with_suffix(".toml")


def imported(home):
    store = Store(home / "data")
    assert target_table("mapped", MAPPING) == "imported_posts"
    version = import_file(store, home, "mapped", POSTS, data_set="sample", mapping=MAPPING)
    return version, store.read("imported_posts").collect()["author"].drop_nulls()


def test_the_same_file_twice_is_one_version_that_remembers_the_file_but_not_where_it_lay(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    make_author_key(one)
    make_author_key(other)
    imported(one)
    version, authors = imported(one)
    (run,) = version.manifest.runs
    assert [one.version for one in Store(one / "data").versions("imported_posts", "sample")] == [version.version]
    assert (run.note["file"], len(run.note["sha256"])) == ("posts.jsonl", 64)
    assert str(ROOT) not in run.model_dump_json()
    assert authors.str.contains("^u_[0-9a-f]{16}$").all()
    assert set(authors).isdisjoint(imported(other)[1])


def test_authors_need_a_key_made_once_for_its_owner_alone_and_the_environments_comes_first(tmp_path, monkeypatch):
    with pytest.raises(RequestError, match="GONGQING_AUTHOR_KEY"):
        imported(tmp_path)
    make_author_key(tmp_path)
    first = author_key(tmp_path)
    make_author_key(tmp_path)
    assert author_key(tmp_path) == first
    assert stat.S_IMODE((tmp_path / "author.key").stat().st_mode) == 0o600
    monkeypatch.setenv("GONGQING_AUTHOR_KEY", "another key of the environment")
    assert author_key(tmp_path) == b"another key of the environment"


def test_sets_with_clips_reach_the_prompts_by_their_text_unless_the_setting_drops_them(tmp_path):
    make_author_key(tmp_path)
    store = Store(tmp_path / "data")
    for name, file, content in (("mesc", "MESC.csv", MESC), ("avamerg", "a.json", json.dumps([AVAMERG]))):
        (tmp_path / file).write_text(content, encoding="utf-8")
        import_file(store, tmp_path, name, tmp_path / file)
    rounds = {f"{dialogue}#{number}" for dialogue in ("mesc:0", "avamerg:00042") for number in (1, 2)}
    refresh(tmp_path, Settings())
    prompts = store.read("grpo_cer").collect()
    assert set(prompts["row_id"]) == rounds
    by_row = {row["row_id"]: row["prompt"] for row in prompts.to_dicts()}
    assert [one["content"] for one in by_row["avamerg:00042#2"][1:]] == list(SAID)
    assert by_row["mesc:0#2"][-1]["content"] == "Coming back."
    refresh(tmp_path, Settings(prompts=Prompts(media="drop")))
    assert store.read("grpo_cer").collect().is_empty()
    dropped = store.read_dropped("grpo_cer").collect()
    assert set(dropped.select("row_id", "reason").rows()) == {(row, "needs_media") for row in rounds}
