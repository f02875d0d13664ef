"""Folders and archives: the same members in the same order, and nothing on the disk."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import UnreadableFile
from pipelines.ingest import files
from pipelines.ingest.files import members

LONG = "/".join(["长" * 60] * 8) + "/a.json"
CONTENT = {LONG: b"long", "b/2.json": b"two", "a/1.json": b"one", "a/10.json": b"ten"}
CONTENT |= {"notes.txt": b"no", ".git/3.json": b"no"}
SORTED = [("a/1.json", b"one"), ("a/10.json", b"ten"), ("b/2.json", b"two"), (LONG, b"long")]


def tar_of(path: Path, *members: tuple[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def zip_of(path: Path, *members: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def folder_of(path: Path, *members: tuple[str, bytes]) -> Path:
    for name, data in members:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


PACKINGS = pytest.mark.parametrize(("make", "name"), [(folder_of, "set"), (tar_of, "set.tar.gz"), (zip_of, "set.zip")])


@PACKINGS
def test_members(tmp_path: Path, make: Any, name: str) -> None:
    path = make(tmp_path / name, *CONTENT.items())
    before = sorted(tmp_path.rglob("*"))
    assert [tuple(member) for member in members(path, (".json",))] == SORTED
    assert sorted(tmp_path.rglob("*")) == before


def test_a_single_file_may_end_as_it_likes_and_be_packed(tmp_path: Path) -> None:
    (tmp_path / "set").write_bytes(b"x")
    assert list(members(tmp_path / "set", (".json",))) == [("set", b"x")]
    (tmp_path / "one.jsonl.gz").write_bytes(gzip.compress(b"{}"))
    assert list(members(tmp_path / "one.jsonl.gz", (".json",))) == [("one.jsonl", b"{}")]
    assert list(members(tmp_path, (".jsonl",))) == [("one.jsonl", b"{}")]


@pytest.mark.drill("data")
@pytest.mark.parametrize("name", ["cut.tar.gz", "cut.gz", "cut.zip", "cut.tar"])
def test_damaged(tmp_path: Path, name: str) -> None:
    whole = (zip_of if name.endswith(".zip") else tar_of)(tmp_path / "whole", *CONTENT.items())
    (tmp_path / name).write_bytes(whole.read_bytes()[:40])
    with pytest.raises(UnreadableFile, match="damaged or cut short"):
        list(members(tmp_path / name, (".json",)))


def test_missing_and_empty(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="no such file"):
        list(members(tmp_path / "none", (".json",)))
    with tarfile.open(tmp_path / "set.tar", "w") as archive:
        link = tarfile.TarInfo("a.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"  # a link is not followed
        archive.addfile(link)
    for path, suffix in ((folder_of(tmp_path / "set", *CONTENT.items()), ".csv"), (tmp_path / "set.tar", ".json")):
        with pytest.raises(UnreadableFile, match="no file here ends in"):
            list(members(path, (suffix,)))


PLAIN = [(f"{i}.json", b"0" * 1000) for i in range(3)]
PACKED = [(f"{i}.json.gz", gzip.compress(b"0" * 1000)) for i in range(3)]  # a bomb, once more


@pytest.mark.drill("data")
@pytest.mark.parametrize("content", [PLAIN, PACKED], ids=["plain", "packed once more"])
@PACKINGS
def test_what_comes_out_is_counted_whatever_packs_it(
    tmp_path: Path, make: Any, name: str, content: list[tuple[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(tmp_path / name, *content)
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 1000)
    monkeypatch.setattr(files, "MAX_BYTES", 3000)
    assert list(members(path, (".json",))) == PLAIN
    monkeypatch.setattr(files, "MAX_BYTES", 2999)
    with pytest.raises(UnreadableFile, match="all files together hold") as caught:
        list(members(path, (".json",)))
    assert (caught.value.where, "in parts" in caught.value.hint) == (path, True)
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 999)
    with pytest.raises(UnreadableFile, match="the file holds more than") as caught:
        list(members(path, (".json",)))
    assert "0.json" in str(caught.value.where)


def test_a_tar_too_large_to_be_held_is_read_again_in_the_same_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = [(f"{n}.json.gz", gzip.compress(f"of {n}".encode() * n)) for n in (3, 1, 9, 4, 1, 2)]
    path = tar_of(tmp_path / "set.tar.gz", ("a.txt", b"no"), *content)
    whole = [(f"{n}.json", f"of {n}".encode() * n) for n in (1, 1, 2, 3, 4, 9)]
    for held in (files._HELD, 25, 0):
        monkeypatch.setattr(files, "_HELD", held)
        assert list(members(path, (".json",))) == whole


@pytest.mark.drill("data")
@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME], ids=repr)
def test_a_header_of_a_tar_that_no_name_has_is_not_read(tmp_path: Path, kind: bytes) -> None:
    """One of 64 KiB of digits, 446 bytes packed, took 22 seconds."""
    entry = tarfile.TarInfo("header")
    entry.type, entry.size = kind, 1 << 20
    path = tmp_path / "set.tar.gz"
    with gzip.open(path, "wb") as packed:
        packed.write(entry.tobuf(tarfile.GNU_FORMAT) + b"1" * (1 << 20) + bytes(1024))
    with pytest.raises(UnreadableFile, match="damaged"):
        list(members(path, (".json",)))


@pytest.mark.drill("data")
def test_what_is_passed_over_in_a_tar_counts_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tar_of(tmp_path / "set.tar.gz", ("video.mp4", b"0" * 2000), ("a.json", b"1"))
    assert list(members(path, (".json",)))
    for bound, most, says in (("MAX_PASSED", 1999, "its other files hold"), ("MAX_FILES", 1, "more than 1 files")):
        with monkeypatch.context() as patched:
            patched.setattr(files, bound, most)
            with pytest.raises(UnreadableFile, match=says):
                list(members(path, (".json",)))
