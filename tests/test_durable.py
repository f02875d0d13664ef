"""Files that are whole or not there, for their owner alone."""

import os
import stat

import pytest

from pipelines.durable import sync, write_whole, writing
from pipelines.errors import StorageFull


def test_a_file_is_for_its_owner_alone_and_so_is_its_folder(tmp_path):
    path = tmp_path / "new" / "file"
    write_whole(path, b"one")
    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    write_whole(path, b"two")
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]
    assert path.read_bytes() == b"two"


def test_what_a_killed_writer_left_is_written_over(tmp_path):
    (tmp_path / "file.part").write_bytes(b"half of something longer than the next")
    write_whole(tmp_path / "file", b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"


def test_the_file_before_stands_until_the_new_one_is_on_the_disk(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, b"before")
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError("the disk is gone")))
    with pytest.raises(OSError, match="gone"):
        write_whole(path, b"after")
    assert path.read_bytes() == b"before"


def test_a_file_and_the_entries_of_a_folder_reach_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    write_whole(tmp_path / "file", b"content")
    assert synced == [(tmp_path / "file").stat().st_ino, tmp_path.stat().st_ino]
    sync(tmp_path / "file")
    assert synced[-1] == (tmp_path / "file").stat().st_ino


def test_a_full_disk_is_named(small_disk):
    write_whole(small_disk / "file", b"before")
    with pytest.raises(StorageFull, match="no room left"):
        write_whole(small_disk / "file", b"x" * 1_000_000)
    assert (small_disk / "file").read_bytes() == b"before"


def test_a_file_that_is_written_piece_by_piece_is_there_when_the_last_one_is(tmp_path):
    path = tmp_path / "new" / "file"
    with writing(path) as file:
        file.write(b"one")
        assert not path.exists()
        file.write(b"two")
    assert path.read_bytes() == b"onetwo"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_block_that_fails_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path):
    write_whole(tmp_path / "file", b"before")

    def broken_off():
        with writing(tmp_path / "file") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"before"
