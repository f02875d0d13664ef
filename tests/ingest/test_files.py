"""Folders and archives: the same members in the same order, and nothing on the disk."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from pipelines.errors import UnreadableFile
from pipelines.ingest import files
from pipelines.ingest.files import members

CONTENT = {"b/2.json": b"two", "a/1.json": b"one", "a/10.json": b"ten", "notes.txt": b"no", ".git/3.json": b"no"}
SORTED = [("a/1.json", b"one"), ("a/10.json", b"ten"), ("b/2.json", b"two")]


def folder(path: Path) -> Path:
    for name, data in CONTENT.items():
        (path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (path / "set" / name).write_bytes(data)
    return path / "set"


def tar(path: Path, mode: str = "w:gz", name: str = "set.tar.gz") -> Path:
    with tarfile.open(path / name, mode) as archive:
        for each, data in CONTENT.items():
            entry = tarfile.TarInfo(each)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        link = tarfile.TarInfo("a/0.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return path / name


def zipped(path: Path) -> Path:
    with zipfile.ZipFile(path / "set.zip", "w") as archive:
        for each, data in CONTENT.items():
            archive.writestr(each, data)
    return path / "set.zip"


@pytest.mark.parametrize("make", [folder, tar, zipped])
def test_members(tmp_path: Path, make: object) -> None:
    path = make(tmp_path)  # type: ignore[operator]
    before = sorted(tmp_path.rglob("*"))
    assert [tuple(member) for member in members(path, (".json",))] == SORTED
    assert sorted(tmp_path.rglob("*")) == before


def test_plain_tar_and_gz(tmp_path: Path) -> None:
    assert len(list(members(tar(tmp_path, "w", "set.tar"), (".json",)))) == 3
    (tmp_path / "one.jsonl.gz").write_bytes(gzip.compress(b"{}"))
    assert list(members(tmp_path / "one.jsonl.gz", (".json",))) == [("one.jsonl", b"{}")]
    assert list(members(tmp_path, (".jsonl",))) == [("one.jsonl", b"{}")]


def test_a_single_file_may_end_as_it_likes(tmp_path: Path) -> None:
    (tmp_path / "set").write_bytes(b"x")
    assert list(members(tmp_path / "set", (".json",))) == [("set", b"x")]


@pytest.mark.parametrize("name", ["cut.tar.gz", "cut.gz", "cut.zip", "cut.tar"])
def test_damaged(tmp_path: Path, name: str) -> None:
    whole = zipped(tmp_path) if name.endswith(".zip") else tar(tmp_path)
    (tmp_path / name).write_bytes(whole.read_bytes()[:40])
    with pytest.raises(UnreadableFile, match="damaged or cut short"):
        list(members(tmp_path / name, (".json",)))


def test_missing_and_empty(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="no such file"):
        list(members(tmp_path / "none", (".json",)))
    with pytest.raises(UnreadableFile, match="no file here ends in"):
        list(members(folder(tmp_path), (".csv",)))


@pytest.mark.parametrize("make", [tar, zipped])
def test_absurd_sizes(tmp_path: Path, make: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_MEMBER_BYTES", 2)
    with pytest.raises(UnreadableFile, match="absurdly large"):
        list(members(make(tmp_path), (".json",)))  # type: ignore[operator]
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"0" * 100))
    with pytest.raises(UnreadableFile, match="absurdly large"):
        list(members(tmp_path / "bomb.gz", (".json",)))
