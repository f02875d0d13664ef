"""What other processes do to a store in the tests."""

import time
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any

from store_rows import TABLE, drops, groups

from pipelines.store import Store
from pipelines.store.object_storage import storage_of
from pipelines.store.storage import LocalFolder


def count_up(root: Path, times: int, start: Barrier) -> None:
    """Add one `times` times to the number under `count`, by compare-and-swap."""
    storage = storage_of(root)
    start.wait()
    for _ in range(times):
        while True:
            old = storage.get("count")
            if storage.swap("count", old, str(int(old or b"0") + 1).encode()):
                break


def stay_in_scratch(root: Path, began: Event) -> None:
    """Sit in a scratch folder until killed."""
    with LocalFolder(root).staging() as folder:
        (folder / "half").write_bytes(b"a version that is never done")
        began.set()
        time.sleep(600)


def open_scratch(root: Path, times: int, start: Barrier) -> None:
    """Open and close scratch folders; fail where somebody else removes one meanwhile."""
    storage = LocalFolder(root)
    start.wait()
    for _ in range(times):
        with storage.staging() as folder:
            (folder / "part").write_bytes(b"x")
            time.sleep(0.001)
            assert (folder / "part").read_bytes() == b"x"


def said(writer: int, turn: int) -> str:
    """Every third turn all writers say the same, else each its own."""
    return f"all-{turn}" if turn % 3 == 0 else f"{writer}-{turn}"


def size(text: str) -> int:
    """How many rows are written with `text`: a reader can tell a mixture."""
    return 20 + sum(text.encode()) % 50


def write_in_turns(root: Path, writer: int, turns: int, start: Barrier, told: Any) -> None:
    """At each turn write at the same time as the other writers; tell the versions that were made."""
    store, made = Store(root), {}
    for turn in range(turns):
        text = said(writer, turn)
        rows = groups(size(text), text)
        start.wait()
        made[text] = store.write(TABLE, rows, drops(text), code=f"writer {writer}").version
    told.put(made)


def read_all_the_time(root: Path, done: Event, told: Any) -> None:
    """Read the current version until `done`; tell how often, and the first thing that was wrong."""
    reads, texts = 0, set()
    try:
        while not done.is_set():
            rows = Store(root).read(TABLE).collect()
            text = rows["given_at"][0]
            assert rows.equals(groups(size(text), text)), f"a mixture: {rows}"
            reads += 1
            texts.add(text)
    except Exception as error:
        told.put((reads, len(texts), f"{type(error).__name__}: {error}"))
    else:
        told.put((reads, len(texts), ""))
