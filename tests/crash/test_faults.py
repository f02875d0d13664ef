"""Whatever goes wrong: never a wrong or half table behind the pointer, and a message that names file and hint."""

import json
import multiprocessing
import os
import re
import shutil
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from near_texts import random_text
from polars.testing import assert_frame_equal
from store_rows import TABLE, drops, groups
from store_workers import read_all_the_time, said, size, write_in_turns

from pipelines.core.files import storage_errors_reported
from pipelines.core.spill import spilled
from pipelines.dedup.group_keys import shared_passages
from pipelines.dedup.search import find_in_batches, name_clusters
from pipelines.errors import DamagedVersion, NoVersion, StorageFull
from pipelines.store import Store, Version
from schemas.tables import TABLES

spawn = multiprocessing.get_context("spawn")

OLD, NEW = groups(40, "old"), groups(60, "new")


def path_of(store: Store, version: Version, file: str) -> Path:
    return Path(store.storage.uri(f"{TABLE}/{version.version}/{file}"))


def pointer_of(store: Store) -> Path:
    return Path(store.storage.uri(f"{TABLE}/current.json"))


def write_old(store: Store) -> Version:
    return store.write(TABLE, OLD, drops("p1"), code="1")


def write_new(store: Store) -> Version:
    return store.write(TABLE, NEW, drops("p1", "p2"), code="2")


def holds(store: Store, rows: pl.DataFrame = OLD, *dropped: str) -> None:
    """The table is whole and has these rows, and nothing is left in scratch."""
    assert_frame_equal(store.read(TABLE).collect(), rows)
    assert_frame_equal(store.read_dropped(TABLE).collect(), drops(*dropped or ("p1",)))
    store.verify(store.version(TABLE))
    assert {path.name for path in Path(store.storage.uri(".tmp")).iterdir()} <= {"alone"}


def is_new(store: Store) -> None:
    holds(store, NEW, "p1", "p2")


# Damage: changes the bytes of a file of a version (None: deletes it), and gives the file that a message must name.

ROWS, DROPPED, MANIFEST = "rows/part-00000.parquet", "dropped/part-00000.parquet", "manifest.json"
Change = Callable[[bytes], bytes | None]


def flipped(content: bytes) -> bytes:
    """A bit of the middle."""
    return bytes(byte ^ (n == len(content) // 2) for n, byte in enumerate(content))


def says(**changes: Any) -> Change:
    return lambda content: json.dumps(json.loads(content) | changes).encode()


def count_one_more_everywhere(content: bytes) -> bytes:
    first, *others = json.loads(content)["files"]
    return says(rows=NEW.height + 1, files=[first | {"rows": NEW.height + 1}, *others])(content)


DAMAGE: dict[str, tuple[str, Change]] = {
    "rows cut to nothing": (ROWS, lambda _: b""),
    "rows cut by the footer": (ROWS, lambda content: content[:-8]),
    "a bit flipped": (ROWS, flipped),
    "a bit flipped in the dropped rows": (DROPPED, flipped),
    "rows deleted": (ROWS, lambda _: None),
    "dropped rows deleted": (DROPPED, lambda _: None),
    "manifest deleted": (MANIFEST, lambda _: None),
    "manifest another document": (MANIFEST, lambda _: b'{"version": "0123456789abcdef", "inputs": ""}'),
    "manifest of another version": (MANIFEST, says(version="0" * 16)),
    "manifest of another table": (MANIFEST, says(table="topics")),
    "rows counted wrong": (MANIFEST, says(rows=NEW.height + 1)),
    "rows counted wrong everywhere": (MANIFEST, count_one_more_everywhere),
    "dropped rows counted wrong": (MANIFEST, says(dropped=0)),
}


def harm(store: Store, version: Version, damage: str) -> Path:
    file, change = DAMAGE[damage]
    path = path_of(store, version, file)
    if (changed := change(path.read_bytes())) is None:
        path.unlink()
    else:
        path.write_bytes(changed)
    return path_of(store, version, ROWS) if damage == "rows counted wrong everywhere" else path


def names_file_and_hint(error: DamagedVersion, path: Path) -> None:
    where = re.search(r"where: (.*)", str(error))[1]
    assert where == str(path)
    assert f"gongqing refresh --select {TABLE}" not in str(error)  # it would refuse: the table remembers
    assert "restore its folder from a backup" in str(error)
    assert f"gongqing tables promote {TABLE} VERSION" in str(error)


@pytest.mark.drill("damage")
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_reported_and_repaired_and_hurts_no_other_version(store: Store, damage: str) -> None:
    old, damaged = write_old(store), write_new(store)
    path = harm(store, damaged, damage)
    for call in (store.read, store.read_dropped, Store(store.storage.root).read):
        with pytest.raises(DamagedVersion) as caught:
            call(TABLE)
        names_file_and_hint(caught.value, path)
    store.promote(TABLE, old.version)
    holds(store)
    with pytest.raises(DamagedVersion):
        store.promote(TABLE, damaged.version)
    holds(store)
    assert old.version in {version.version for version in store.versions(TABLE)}
    with pytest.raises(DamagedVersion) as caught:
        store.read(TABLE, damaged.version).collect()
    names_file_and_hint(caught.value, path)
    write_new(store)
    is_new(store)


def test_a_repair_loses_no_run(store: Store) -> None:
    harm(store, write_new(store), "rows deleted")
    repaired = store.write(TABLE, NEW, drops("p1", "p2"), code="3")
    assert [run.code for run in repaired.manifest.runs] == ["2", "3"]
    harm(store, repaired, "dropped rows deleted")
    assert [run.code for run in write_new(store).manifest.runs] == ["3", "2"]  # the last that made it stands last


def test_a_manifest_of_another_partition_is_reported_and_repaired(store: Store) -> None:
    rows, manifests = TABLES["imported_posts"].sample(3), []
    store.write("imported_posts", rows.head(2), partition="over here")
    for name, folder in (("there", "there"), ("over here", "over%20here")):
        version = store.write("imported_posts", rows, partition=name)
        manifests.append(Path(store.storage.uri(f"imported_posts/{folder}/{version.version}/manifest.json")))
    manifests[1].write_bytes(manifests[0].read_bytes())
    with pytest.raises(DamagedVersion, match="speaks of imported_posts there") as caught:
        store.read("imported_posts")
    assert str(manifests[1]) in str(caught.value)
    assert "import it again: gongqing import NAME PATH --as 'over here'; or go back" in str(caught.value)
    assert "tables promote imported_posts VERSION --partition 'over here'" in str(caught.value)
    store.write("imported_posts", rows, partition="over here")
    assert store.read("imported_posts").collect().height == 6


# The pointer

ELSEWHERE = b'{"version": "../../etc/passwd", "inputs": "", "promoted": false}'


@pytest.mark.drill("damage")
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b'{"table": "splits"}', ELSEWHERE])
def test_a_damaged_pointer_is_reported_and_repaired(store: Store, content: bytes) -> None:
    old, new = write_old(store), write_new(store)
    mends = ((lambda: write_new(store), is_new), (lambda: store.promote(TABLE, old.version[:8]), holds))
    for mend, holds_again in mends:
        pointer_of(store).write_bytes(content)
        assert_frame_equal(store.read(TABLE, old.version).collect(), OLD)  # it hides no version that is named
        assert {one.version: one.current for one in store.versions(TABLE)} == {old.version: False, new.version: False}
        for call in (store.read, store.version, store.current):
            with pytest.raises(DamagedVersion) as caught:
                call(TABLE)
            for word in (str(pointer_of(store)), f"tables promote {TABLE} VERSION", old.version, new.version):
                assert word in str(caught.value)
        mend()
        holds_again(store)


def test_a_pointer_that_is_gone_is_a_table_never_written(store: Store) -> None:
    write_old(store)
    pointer_of(store).unlink()
    with pytest.raises(NoVersion, match="make one"):
        store.read(TABLE)
    write_old(store)
    holds(store)


# A full disk


def full(store: Store, rows: pl.DataFrame) -> StorageFull | None:
    """Why the rows were not written. The table then stands as it was."""
    try:
        store.write(TABLE, rows, drops("p1", "p2"))
    except StorageFull as error:
        reason = error
    else:
        return None
    assert str(store.storage.root) in str(reason)
    assert "free some space" in str(reason)
    holds(store)
    return reason


def where_it_was_full(error: StorageFull) -> str:
    """The innermost of the writing functions that the error came through."""
    writing = {"write_parquet": "Parquet", "_publish": "manifest", "swap": "pointer"}
    trace = traceback.extract_tb(error.__cause__.__traceback__)
    return [writing[one.name] for one in trace if "pipelines/store" in one.filename and one.name in writing][-1]


@pytest.mark.drill("disk")
def test_a_full_disk_changes_nothing_and_the_same_write_then_succeeds(small_disk: Path) -> None:
    random = Random(1)
    large = groups(400).with_columns(given_at=pl.Series([random.randbytes(50).hex() for _ in range(400)]))
    page, ballast = os.sysconf("SC_PAGESIZE"), small_disk / "ballast"
    fell: Counter[str] = Counter()
    for pages in range(40):
        store = Store(small_disk / "data")
        write_old(store)
        ballast.write_bytes(b"\0" * (os.statvfs(small_disk).f_bavail - pages) * page)
        error = full(store, large)
        if error is None:
            break
        fell[where_it_was_full(error)] += 1
        ballast.unlink()
        assert full(store, large) is None
        holds(store, large, "p1", "p2")
        shutil.rmtree(store.storage.root)
    holds(store, large, "p1", "p2")
    assert set(fell) == {"Parquet", "manifest", "pointer"}
    assert fell["Parquet"] > 5


@pytest.mark.drill("disk")
def test_a_disk_without_room_for_one_more_file(small_disk: Path) -> None:
    """Not even an empty lock can be made."""
    store = Store(small_disk / "data")
    write_old(store)
    for n in range(os.statvfs(small_disk).f_favail):
        (small_disk / f"file{n}").touch()
    times = 0
    while full(store, NEW):
        (small_disk / f"file{times}").unlink()
        times += 1
    is_new(store)
    assert times > 3


@pytest.mark.drill("disk")
def test_who_looks_at_all_rows_says_that_the_disk_is_full_and_leaves_nothing_there(small_disk: Path) -> None:
    texts = pl.Series("text", [random_text(90, number) for number in range(4000)])
    steps: tuple[Callable[[], object], ...] = (
        lambda: spilled([texts.to_frame()], small_disk),
        lambda: name_clusters(texts, partial(find_in_batches, scratch=small_disk)),
        lambda: shared_passages(texts, small_disk),
    )
    for step in steps:
        with pytest.raises(StorageFull, match="no room left"), storage_errors_reported(small_disk):
            step()
        assert list(small_disk.iterdir()) == []


# Several processes


@pytest.mark.drill("race")
@pytest.mark.slow
def test_writers_at_once_and_a_reader_all_the_time(tmp_path: Path) -> None:
    writers, turns, root = 3, 18, tmp_path / "data"
    store = Store(root)
    begun = store.write(TABLE, groups(size("begin"), "begin"))
    start, done, written, was_read = spawn.Barrier(writers), spawn.Event(), spawn.Queue(), spawn.Queue()
    reader = spawn.Process(target=read_all_the_time, args=(root, done, was_read))
    shared = (turns, start, written)
    processes = [spawn.Process(target=write_in_turns, args=(root, writer, *shared)) for writer in range(writers)]
    for process in (reader, *processes):
        process.start()
    try:
        made = [written.get(timeout=240) for _ in processes]
        done.set()
        reads, _, wrong = was_read.get(timeout=60)
    finally:
        done.set()
        for process in (reader, *processes):
            process.join(60)
            process.kill()
    assert wrong == ""
    assert reads > turns
    assert [process.exitcode for process in processes] == [0] * writers

    by_text = {text: version for one in made for text, version in one.items()}
    assert all(by_text[text] == version for one in made for text, version in one.items())  # one content, one version
    listed = {version.version: version for version in store.versions(TABLE)}
    assert listed.keys() == {begun.version, *by_text.values()}
    for text, version in by_text.items():
        store.verify(listed[version])
        assert_frame_equal(store.read(TABLE, version).collect(), groups(size(text), text))
        runs = sorted(run.code for run in listed[version].manifest.runs)
        everyone = [f"writer {writer}" for writer in range(writers)]
        assert runs == (everyone if text.startswith("all") else [f"writer {text[0]}"])
    last = {said(writer, turns - 1) for writer in range(writers)}
    assert store.version(TABLE).version in {by_text[text] for text in last}
