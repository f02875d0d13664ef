"""Files that are whole or not there, for their owner alone."""

import errno
import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import polars as pl
import pytest
import sqlalchemy

from pipelines.core.files import storage_error, storage_errors_reported, sync, write_whole, writing
from pipelines.errors import StorageBroken, StorageDenied, StorageFull


def test_a_file_is_for_its_owner_alone_and_so_is_its_folder(tmp_path):
    path = tmp_path / "new" / "file"
    write_whole(path, b"one")
    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    (path.parent / "file.part").write_bytes(b"what a killed writer left, longer than the next")
    write_whole(path, b"two")
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]
    assert path.read_bytes() == b"two"


def test_a_file_and_the_entries_of_a_folder_reach_the_disk_or_the_file_before_stands(tmp_path, monkeypatch):
    path, synced = tmp_path / "file", []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    write_whole(path, b"before")
    assert synced == [path.stat().st_ino, tmp_path.stat().st_ino]
    sync(path)
    assert synced[-1] == path.stat().st_ino
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError("the disk is gone")))
    with pytest.raises(OSError, match="gone"):
        write_whole(path, b"after")
    assert path.read_bytes() == b"before"


@pytest.mark.drill("disk")
def test_a_full_disk_is_named(small_disk):
    write_whole(small_disk / "file", b"before")
    with pytest.raises(StorageFull, match="no room left"):
        write_whole(small_disk / "file", b"x" * 1_000_000)
    assert (small_disk / "file").read_bytes() == b"before"


def test_a_file_that_is_written_piece_by_piece_is_there_when_the_last_one_is(tmp_path):
    path = tmp_path / "file"
    with writing(path) as file:
        file.write(b"one")
        assert not path.exists()
        file.write(b"two")
    assert path.read_bytes() == b"onetwo"
    with pytest.raises(KeyboardInterrupt), writing(path) as file:  # noqa: PT012
        file.write(b"half")
        raise KeyboardInterrupt
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"onetwo"


@pytest.mark.drill("race")
def test_of_several_who_write_a_file_at_once_each_writes_it_whole(tmp_path):
    path = tmp_path / "file"
    contents = [bytes([65 + writer]) * (1_000 * (writer + 1)) for writer in range(8)]

    def write(content: bytes) -> None:
        for _ in range(50):
            with writing(path) as file:
                for start in range(0, len(content), 100):
                    file.write(content[start : start + 100])
            assert path.read_bytes() in contents

    with ThreadPoolExecutor(len(contents)) as writers:
        list(writers.map(write, contents))
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def _full_database(folder):
    with sqlite3.connect(folder / "full.db") as book:
        book.execute("PRAGMA max_page_count = 2")
        book.execute("CREATE TABLE t (x)")
        book.execute("INSERT INTO t VALUES (zeroblob(100000))")


def _read_only_database(folder):
    sqlite3.connect(folder / "closed.db").close()
    with sqlite3.connect(f"file:{folder / 'closed.db'}?mode=ro", uri=True) as book:
        book.execute("CREATE TABLE t (x)")


def _through_sqlalchemy(folder):
    sqlite3.connect(folder / "ro").close()
    read_only = partial(sqlite3.connect, f"file:{folder / 'ro'}?mode=ro", uri=True)
    with sqlalchemy.create_engine("sqlite://", creator=read_only).connect() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE t (x)"))


GROUP = ExceptionGroup("several", [ValueError("one"), OSError(errno.EDQUOT, "over the quota", "/x")])


def test_what_the_disk_refuses_has_words_a_place_and_a_hint(tmp_path):
    for fault, kind, says in (
        (_full_database, StorageFull, "no room left on the device"),
        (_read_only_database, StorageDenied, "readonly database"),
        (_through_sqlalchemy, StorageDenied, "readonly database"),
        (GROUP, StorageFull, "no room left"),
        (OSError(errno.ENOSPC, "Error writing bytes to file"), StorageFull, "no room left"),
        (OSError("No space left on device (os error 28)"), StorageFull, "no room left"),
        (pl.exceptions.ComputeError("Read-only file system (os error 30)"), StorageDenied, "Read-only"),
        (PermissionError(errno.EACCES, "Permission denied", "/elsewhere/x"), StorageDenied, "where: /elsewhere/x"),
        (OSError(errno.EIO, "Input/output error", "/there/x"), StorageBroken, "the device fails"),
    ):
        with pytest.raises(kind) as caught, storage_errors_reported(tmp_path):  # noqa: PT012
            if isinstance(fault, Exception):
                raise fault
            fault(tmp_path)
        assert all(part in str(caught.value) for part in (says, "where: ", "hint: ")), says


def test_an_error_that_was_met_on_the_way_counts_where_a_library_passes_it_on(tmp_path):
    ours, passed_on = RuntimeError("could not clean up"), pl.exceptions.ComputeError("cannot write")
    for error in (ours, passed_on):
        error.__context__ = OSError(errno.EROFS, "Read-only file system", str(tmp_path / "refresh.lock"))
    assert str(tmp_path / "refresh.lock") in str(storage_error(passed_on, tmp_path))
    assert storage_error(ours, tmp_path) is None, "a mistake of ours in the handling of it"
    passed_on.__cause__ = ValueError("of something else")
    assert storage_error(passed_on, tmp_path) is None
    met = sqlite3.OperationalError("database or disk is full")
    met.__context__ = known = StorageFull("no room", where="/there", hint="")
    assert storage_error(met, tmp_path) is known, "what knows more comes first"


def test_any_other_error_is_itself(tmp_path):
    for error in (
        ValueError("No space left on device (os error 28)"),  # a text may say so
        FileNotFoundError(errno.ENOENT, "No such file or directory", "/x"),
        PermissionError(errno.EACCES, "Permission denied"),  # of a port
        OSError(errno.EIO, "Input/output error"),  # of a terminal
        sqlite3.OperationalError("no such table: t"),
    ):
        assert storage_error(error, tmp_path) is None
