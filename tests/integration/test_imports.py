"""A file becomes a partition; authors become pseudonyms."""

import stat

import pytest

from pipelines.errors import RequestError
from pipelines.ingest.import_file import import_file, target_table
from pipelines.settings import ROOT, author_key, make_author_key
from pipelines.store import Store

POSTS = ROOT / "samples" / "posts.jsonl"
MAPPING = POSTS.with_suffix(".toml")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "data")


def test_the_same_file_twice_is_one_version_that_remembers_the_file_but_not_where_it_lay(store, tmp_path):
    make_author_key(tmp_path)
    for _ in range(2):
        version = import_file(store, tmp_path, "mapped", POSTS, data_set="sample", mapping=MAPPING)
    (run,) = version.manifest.runs
    assert [one.version for one in store.versions("imported_posts", "sample")] == [version.version]
    assert (run.note["file"], len(run.note["sha256"])) == ("posts.jsonl", 64)
    assert str(ROOT) not in run.model_dump_json()
    authors = store.read("imported_posts").collect()["author"].drop_nulls()
    assert authors.str.contains("^u_[0-9a-f]{16}$").all()
    other = tmp_path / "other"
    make_author_key(other)
    import_file(Store(other / "data"), other, "mapped", POSTS, data_set="sample", mapping=MAPPING)
    assert set(authors).isdisjoint(Store(other / "data").read("imported_posts").collect()["author"].drop_nulls())


def test_without_a_key_authors_cannot_be_imported(store, tmp_path):
    with pytest.raises(RequestError, match="GONGQING_AUTHOR_KEY"):
        import_file(store, tmp_path, "mapped", POSTS, data_set="sample", mapping=MAPPING)


def test_the_key_is_made_once_for_its_owner_alone_and_the_environments_comes_first(tmp_path, monkeypatch):
    make_author_key(tmp_path)
    first = author_key(tmp_path)
    make_author_key(tmp_path)
    assert author_key(tmp_path) == first
    assert stat.S_IMODE((tmp_path / "author.key").stat().st_mode) == 0o600
    monkeypatch.setenv("GONGQING_AUTHOR_KEY", "another key of the environment")
    assert author_key(tmp_path) == b"another key of the environment"


def test_a_mapping_says_which_table_it_fills():
    assert target_table("mapped", MAPPING) == "imported_posts"
    assert target_table("mapped", ROOT / "samples" / "dialogues.toml") == "imported_dialogues"
    assert target_table("psyqa", None) == "imported_posts"
    assert target_table("esconv", None) == "imported_dialogues"
