"""Releases on a disk and in a bucket: whole or not there, never changed, a pointer that moves; and where they were
published.
"""

import datetime as dt
import json

import polars as pl
import pytest
from older_home import put
from release_rows import made, triplets

from pipelines.core.files import sha256_of
from pipelines.errors import DamagedRelease, RequestError, UnknownName
from pipelines.store.object_storage import ObjectStorage
from pipelines.store.parquet import write_parquet
from pipelines.store.release_manifest import Release, Shard
from pipelines.store.releases import FILE, UNKNOWN, Releases, note_publication, publications, require_name
from pipelines.store.storage import LocalFolder
from schemas.tables import TABLES

pytestmark = pytest.mark.usefixtures("where")

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
    assert json.loads(releases.storage.get("current.json")) == {"name": "v1"}


def test_a_pointer_that_is_damaged_or_leads_to_nothing_says_so(tmp_path):
    made(tmp_path, "v1", ROWS)
    made(tmp_path, "v2", ROWS)
    Releases(tmp_path).promote("v2")
    storage = Releases(tmp_path).storage
    storage.discard("v2")
    with pytest.raises(DamagedRelease, match=r"the pointer names v2(.|\n)*promote NAME \(there are: v1\)"):
        Releases(tmp_path).current()
    put(storage, "current.json", b"{")
    with pytest.raises(DamagedRelease, match="v1"):
        Releases(tmp_path).current()
    Releases(tmp_path).promote("v1")
    assert Releases(tmp_path).current().name == "v1"
    put(storage, "v3/manifest.json", storage.get("v1/manifest.json"))
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
@pytest.mark.parametrize("file", ["a shard", "manifest"])
def test_what_is_not_as_it_was_written_is_damaged(tmp_path, harm, file):
    release, storage = made(tmp_path, "v1", ROWS), Releases(tmp_path).storage
    key = "v1/manifest.json" if file == "manifest" else storage.key("v1", release.configs["rm_triplets"][0])
    content = storage.get(key)
    storage.remove(key)
    if harm == "cut":
        put(storage, key, content[:-2])  # the last byte of a manifest is but the end of a line
    if harm == "flip":
        put(storage, key, content[:20] + bytes([content[20] ^ 1]) + content[21:])
    is_there = isinstance(storage, LocalFolder) or (file, harm) != ("manifest", "unlink")
    with pytest.raises(DamagedRelease if is_there else UnknownName, match="v1"):
        Releases(tmp_path).read("v1")
    assert Releases(tmp_path).names() == ["v1"] * is_there, "in a bucket nothing counts without its manifest"


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
    path = tmp_path / "releases" / FILE  # in the home, wherever the releases are
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


def test_who_reads_files_has_them_in_a_folder_and_what_is_changed_there_is_put_back(tmp_path):
    release, releases = made(tmp_path, "v1", ROWS), Releases(tmp_path)
    folder = releases.folder("v1")
    assert Release.model_validate_json((folder / "manifest.json").read_bytes()) == release
    for shard in release.configs["rm_triplets"]:
        assert sha256_of(folder / shard.path) == shard.sha256
    assert folder.is_relative_to(tmp_path / "releases")
    if isinstance(releases.storage, ObjectStorage):
        (shard, other) = release.configs["rm_triplets"]
        (folder / shard.path).write_bytes(b"of a fetch that was cut off")
        assert sha256_of(Releases(tmp_path).folder("v1") / shard.path) == shard.sha256
        rows = pl.read_parquet(folder / shard.path).head(1)
        file = write_parquet(folder, shard.path, rows, TABLES["rm_triplets"].arrow_schema())
        less = release.model_copy(
            update={"configs": {"rm_triplets": [Shard(split="train", **file.model_dump()), other]}}
        )
        (folder / "manifest.json").write_bytes(less.to_bytes())
        releases.put_back("v1")
        assert Releases(tmp_path).read("v1") == less
        assert Releases(tmp_path).frame("v1", "rm_triplets", "train").collect().height == 1
        assert len(releases.storage.files("v1")) == 3, "no byte of the file before is left"
    with pytest.raises(UnknownName):
        releases.folder("v2")
