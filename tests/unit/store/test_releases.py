"""Releases on disk: whole or not there, never changed, a pointer that moves, and where they were published."""

import datetime as dt
import json
import shutil

import pytest
from release_rows import made, triplets

from pipelines.errors import DamagedRelease, RequestError, UnknownName
from pipelines.store.releases import FILE, UNKNOWN, Releases, note_publication, publications, require_name

ROWS = {"rm_triplets": triplets(("s:1/b", "train"), ("s:1/a", "train"), ("s:2/a", "test"))}


def test_a_home_without_releases_has_none_and_others_are_listed_oldest_first(tmp_path):
    releases = Releases(tmp_path)
    assert releases.names() == []
    assert releases.current() is None
    with pytest.raises(UnknownName):
        releases.read("v1")
    for day, name in ((2, "a"), (1, "b"), (3, "0")):
        made(tmp_path, name, ROWS, made_at=dt.datetime(2026, 1, day, tzinfo=dt.UTC))
    assert Releases(tmp_path).names() == ["b", "a", "0"]


def test_the_pointer_goes_forwards_and_back(tmp_path):
    made(tmp_path, "v1", ROWS)
    made(tmp_path, "v2", ROWS)
    releases = Releases(tmp_path)
    assert releases.current() is None  # to publish moves no pointer
    for name in ("v2", "v1"):
        releases.promote(name)
        assert Releases(tmp_path).current().name == name
    with pytest.raises(UnknownName, match="v1"):
        releases.promote("v3")
    assert json.loads((tmp_path / "releases" / "current.json").read_text()) == {"name": "v1"}


def test_a_pointer_that_is_damaged_or_leads_to_nothing_says_so(tmp_path):
    made(tmp_path, "v1", ROWS)
    made(tmp_path, "v2", ROWS)
    Releases(tmp_path).promote("v2")
    shutil.rmtree(tmp_path / "releases" / "v2")
    with pytest.raises(DamagedRelease, match=r"the pointer names v2(.|\n)*promote NAME \(there are: v1\)"):
        Releases(tmp_path).current()
    (tmp_path / "releases" / "current.json").write_text("{")
    with pytest.raises(DamagedRelease, match="v1"):
        Releases(tmp_path).current()
    Releases(tmp_path).promote("v1")
    assert Releases(tmp_path).current().name == "v1"
    shutil.copytree(tmp_path / "releases" / "v1", tmp_path / "releases" / "v3")
    with pytest.raises(DamagedRelease, match="speaks of v1"):
        Releases(tmp_path).read("v3")


def test_a_name_is_one_that_a_folder_and_a_tag_may_have_and_not_the_pointers():
    for name in ("current.json", "v1.", "v1..2", "v1.lock", "v1.LOCK", ".v1", "", "V1", "a/b", "..", "x" * 65):
        with pytest.raises(RequestError, match="cannot name a release"):
            require_name(name)
    for name in ("v1.0.0", "2026-11", "a_b", "v1.lock2", "0", "x" * 64):
        require_name(name)


def test_rows_are_read_by_config_and_split_in_the_order_of_keys(tmp_path):
    made(tmp_path, "v1", ROWS)
    releases = Releases(tmp_path)
    assert releases.frame("v1", "rm_triplets").collect()["row_id"].to_list() == ["s:1/a", "s:1/b", "s:2/a"]
    assert releases.frame("v1", "rm_triplets", "test").collect()["row_id"].to_list() == ["s:2/a"]
    for wanted in (("rm_triplet",), ("rm_triplets", "validation")):
        with pytest.raises(UnknownName):
            releases.frame("v1", *wanted)


def test_a_name_is_given_once(tmp_path):
    first = made(tmp_path, "v1", ROWS, settings={"a": {"b": (1, 2)}})
    assert (first.rows("rm_triplets"), first.rows("rm_triplets", "test"), first.rows("sft_coe")) == (3, 1, 0)
    with pytest.raises(RequestError, match="holds something else"):
        made(tmp_path, "v1", {"rm_triplets": triplets(("s:9/a", "train"))})
    assert Releases(tmp_path).read("v1") == first


@pytest.mark.drill("damage")
@pytest.mark.parametrize("harm", ["unlink", "cut", "flip"])
@pytest.mark.parametrize("file", ["rm_triplets/train-00000-of-00001.parquet", "manifest.json"])
def test_what_is_not_as_it_was_written_is_damaged(tmp_path, harm, file):
    made(tmp_path, "v1", ROWS)
    path = tmp_path / "releases" / "v1" / file
    content = path.read_bytes()
    path.unlink()
    if harm == "cut":
        path.write_bytes(content[:-2])  # the last byte of a manifest is but the end of a line
    if harm == "flip":
        path.write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
    with pytest.raises(DamagedRelease, match="v1"):
        Releases(tmp_path).read("v1")
    assert Releases(tmp_path).names() == ["v1"]


def test_content_is_what_files_and_pins_say_and_nothing_else(tmp_path):
    first = made(tmp_path, "v1", ROWS)
    assert made(tmp_path, "v2", ROWS, code="another", prompts={"a": "a@2"}).content == first.content
    assert made(tmp_path, "v3", ROWS, pins={"rm_triplets": "1" * 16}).content != first.content
    assert made(tmp_path, "v4", {"rm_triplets": triplets(("s:1/a", "train"))}).content != first.content


def test_an_upload_is_noted_once_and_a_line_that_was_cut_off_is_ignored_and_written_again(tmp_path):
    assert publications(tmp_path) == []
    for commit in ("a" * 40, "b" * 40, "a" * 40):
        note_publication(tmp_path, "me/x", "v1", commit)
    noted = [(one.repo, one.tag, one.commit[0]) for one in publications(tmp_path)]
    assert noted == [("me/x", "v1", "a"), ("me/x", "v1", "b")]
    path = tmp_path / "releases" / FILE
    path.write_bytes(path.read_bytes() + path.read_bytes()[:20])
    assert len(publications(tmp_path)) == 2
    note_publication(tmp_path, "me/x", "v2", "b" * 40)
    assert [one.tag for one in publications(tmp_path)] == ["v1", "v1", "v2"]


def test_what_was_begun_counts_until_its_end_is_noted(tmp_path):
    """Killed after the commit, an upload would else be told to no erasure."""
    for _ in range(2):
        note_publication(tmp_path, "me/x", "v1", UNKNOWN)
    assert [(one.repo, one.tag, one.commit) for one in publications(tmp_path)] == [("me/x", "v1", UNKNOWN)]
    note_publication(tmp_path, "me/x", "v1", "a" * 40)
    assert [one.commit[0] for one in publications(tmp_path)] == ["a"]
    assert len((tmp_path / "releases" / FILE).read_bytes().splitlines()) == 2
