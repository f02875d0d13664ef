"""What a storage promises, and a local folder as a folder."""

import errno
import fcntl
import hashlib
import multiprocessing
import os
import stat
from pathlib import Path

import pytest
from store_workers import count_up, open_scratch, stay_in_scratch

from pipelines.errors import StorageFull
from pipelines.store import Store
from pipelines.store.manifest import File
from pipelines.store.storage import LocalFolder, Storage

spawn = multiprocessing.get_context("spawn")


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    return LocalFolder(tmp_path / "data")


@pytest.fixture
def storage(store: Store) -> Storage:
    """On a local disk, and in a bucket."""
    return store.storage


def scratch(storage: Storage) -> set[str]:
    """What lies in the scratch folder, but for the locks of publishing and swapping."""
    return {path.name for path in (storage.root / ".tmp").iterdir()} - {"alone", "uploading"}


def put(storage: Storage, prefix: str, content: bytes, *, damaged: bool = False) -> Path:
    with storage.staging() as staged:
        (staged / "rows").mkdir()
        (staged / "rows" / "part").write_bytes(content)
        (staged / "manifest.json").write_bytes(b"of " + content)
        storage.publish(staged, prefix, lambda: damaged)
    return staged


def part(storage: Storage, prefix: str, content: bytes) -> str:
    """The key of what `put` puts there."""
    file = File(path="rows/part", rows=0, bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    return storage.key(prefix, file)


def test_a_swap_puts_only_where_the_old_content_still_is(storage: Storage) -> None:
    assert (storage.get("a/b"), storage.stat("a/b"), storage.children("a")) == (None, None, [])
    assert storage.swap("a/pointer", None, b"1")
    assert not storage.swap("a/pointer", None, b"2")
    assert not storage.swap("a/pointer", b"0", b"2")
    assert not storage.swap("a/other", b"1", b"2")
    assert storage.get("a/pointer") == b"1"
    assert storage.swap("a/pointer", b"1", b"2")
    assert storage.get("a/pointer") == b"2"


def test_what_is_published_is_there_whole_and_goes_whole(storage: Storage) -> None:
    put(storage, "a/v1", b"rows")
    put(storage, "a/v2", b"ROWS")
    assert storage.published("a") == ["v1", "v2"]
    for name, content in (("v1", b"rows"), ("v2", b"ROWS")):
        key = part(storage, f"a/{name}", content)
        assert storage.files(f"a/{name}") == sorted([f"a/{name}/manifest.json", key])
        assert (storage.get(key), storage.stat(key)[0]) == (content, 4)
        assert storage.sha256(key) == hashlib.sha256(content).hexdigest()
    assert storage.discard("a/v1") == len(b"rows" + b"of rows")
    assert storage.published("a") == ["v2"]
    assert storage.files("a/v1") == []
    storage.remove(part(storage, "a/v2", b"ROWS"))
    assert storage.files("a") == ["a/v2/manifest.json"]


def test_what_is_linked_is_published_again_under_another_name(storage: Storage) -> None:
    put(storage, "a/v1", b"rows")
    with storage.staging() as staged:
        storage.link(part(storage, "a/v1", b"rows"), staged / "rows" / "part")
        assert (staged / "rows" / "part").read_bytes() == b"rows"
        (staged / "manifest.json").write_bytes(b"of the same")
        storage.publish(staged, "a/v2", lambda: False)
    storage.discard("a/v1")
    assert storage.get(part(storage, "a/v2", b"rows")) == b"rows"


def test_what_is_whole_stays_and_what_is_damaged_is_replaced(storage: Storage) -> None:
    (storage.root / ".tmp").mkdir(parents=True)
    (storage.root / ".tmp" / "abc.lock").touch()  # its owner was killed before it made the folder, or after
    put(storage, "a/v1", b"rows")
    key = part(storage, "a/v1", b"rows")
    before = storage.stat(key)
    put(storage, "a/v1", b"ROWS")
    assert storage.get(key) == b"rows"
    assert storage.stat(key) == before
    put(storage, "a/v1", b"ROWS", damaged=True)
    assert storage.get(part(storage, "a/v1", b"ROWS")) == b"ROWS"
    assert storage.get("a/v1/manifest.json") == b"of ROWS"
    assert (scratch(storage), {*storage.children("")} - {".tmp"}) == (set(), {"a"})


def test_all_is_flushed_before_it_can_be_seen_and_its_place_after(
    folder: LocalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the loss of power is no worse than kill −9."""
    events: list[str] = []
    flush, move = os.fsync, os.rename

    def noting_flush(descriptor: int) -> None:
        events.append(f"flush {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
        flush(descriptor)

    def noting_move(source: Path, target: Path) -> Path:
        events.append("move")
        move(source, target)
        return target

    folder.swap("a/pointer", None, b"1")
    monkeypatch.setattr(os, "fsync", noting_flush)
    monkeypatch.setattr(Path, "rename", noting_move)
    monkeypatch.setattr(Path, "replace", noting_move)

    staged = put(folder, "a/v1", b"rows")
    seen = events.index("move")
    assert set(events[:seen]) == {"flush part", "flush rows", "flush manifest.json", f"flush {staged.name}"}
    assert events[seen:] == ["move", "flush a"]

    events.clear()
    assert folder.swap("a/pointer", b"1", b"2")
    assert events == ["flush fresh", "move", "flush a"]
    folder.swap("a/b/pointer", None, b"1")
    assert events[3:] == ["flush fresh", "flush a", "move", "flush b"], "a new folder, into its parent"


def test_scratch_is_gone_afterwards_whatever_happens(folder: LocalFolder) -> None:
    with folder.staging() as staged:
        (staged / "a" / "b").mkdir(parents=True)
        assert scratch(folder) == {staged.name, f"{staged.name}.lock"}
    with pytest.raises(KeyboardInterrupt), folder.staging():
        raise KeyboardInterrupt
    assert scratch(folder) == set()


@pytest.mark.drill("kill")
def test_the_scratch_of_the_living_stays_and_that_of_the_dead_goes(folder: LocalFolder) -> None:
    began = spawn.Event()
    owner = spawn.Process(target=stay_in_scratch, args=(folder.root, began))
    owner.start()
    try:
        assert began.wait(60)
        with folder.staging() as staged, folder.staging():
            of_the_owner = scratch(folder) - {f"{staged.name}.lock", staged.name}
            assert len(of_the_owner) == 4  # its own two, and the inner one's
        assert len(scratch(folder)) == 2
    finally:
        owner.kill()
        owner.join()
    with folder.staging() as staged:
        assert scratch(folder) == {staged.name, f"{staged.name}.lock"}
    assert scratch(folder) == set()


def test_an_owner_whose_lock_was_swept_makes_another(folder: LocalFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweeper may come between the making of a lock file and its locking."""
    really_lock = fcntl.flock
    swept: list[str] = []

    def lock_late(file: object, how: int) -> None:
        if how == fcntl.LOCK_EX and not swept:
            swept.extend(scratch(folder))
            LocalFolder._sweep(folder.root / ".tmp")
        really_lock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    with folder.staging() as staged:
        assert swept == [f"{staged.name}.lock"]
        assert scratch(folder) == {staged.name, f"{staged.name}.lock"}
        LocalFolder._sweep(folder.root / ".tmp")
        assert staged.is_dir()
    assert scratch(folder) == set()


@pytest.mark.drill("race")
@pytest.mark.parametrize("work", [count_up, open_scratch])
def test_a_swap_loses_no_increment_and_no_process_sweeps_the_scratch_of_another(folder: LocalFolder, work) -> None:
    start = spawn.Barrier(4)
    processes = [spawn.Process(target=work, args=(folder.root, 50, start)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 4
    assert work is not count_up or folder.get("count") == b"200"
    assert scratch(folder) == set()


def test_no_room_is_reported_with_the_place_and_a_hint(folder: LocalFolder) -> None:
    for code in (errno.ENOSPC, errno.EDQUOT):
        with pytest.raises(StorageFull, match="free some space") as caught, folder.staging():
            raise OSError(code, os.strerror(code))
        assert str(folder.root) in str(caught.value)


def test_a_new_store_is_for_its_owner_alone(tmp_path):
    """Raw tables hold what people wrote."""
    put(LocalFolder(tmp_path / "home" / "data"), "table/1", b"x")
    assert stat.S_IMODE((tmp_path / "home" / "data").stat().st_mode) == 0o700
