"""An index is a cache: damaged, foreign, half written, fought over or without room, it gives what a full run gives."""

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import kill_index
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_texts import POOL, bytes_of, columns, files, new_folder, strays
from polars.testing import assert_frame_equal

from pipelines.dedup import find_duplicates, remembered
from pipelines.dedup.index import Index
from pipelines.errors import GongqingError

TABLE: dict[str, str | None] = {f"post:{i:02d}": text for i, text in enumerate(POOL)}
LESS = dict(list(TABLE.items())[:-8])


def is_right(folder: Path, table: dict[str, str | None], **settings) -> Index:
    """The index in a folder, which gave the same as a full run over the table, and has tidied up."""
    opened = Index(folder, **settings)
    ids, texts = columns(table)
    assert_frame_equal(opened.clusters(ids, texts), find_duplicates(texts, ids=ids, **settings))
    assert strays(opened) == []
    return opened


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """An index of two runs, whose files are of every kind."""
    folder = tmp_path / "index"
    is_right(folder, LESS)
    is_right(folder, TABLE)
    assert len(list(folder.glob("run-*"))) == 2
    return folder


def is_rebuilt(folder: Path, because: str, caplog: pytest.LogCaptureFixture, **settings) -> None:
    with caplog.at_level(logging.WARNING, "pipelines.dedup.index"):
        opened = is_right(folder, TABLE, **settings)
    assert because in opened.report.rebuilt
    assert opened.report.hashed == len(POOL)
    assert because in caplog.text
    assert is_right(folder, TABLE, **settings).report.rebuilt is None


# Damage


KINDS = ("index.json", "run-", "found-", "members-")


@pytest.mark.drill("damage")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", ["removed", "emptied", "cut short", "prolonged"])
def test_a_damaged_file_is_noticed(made, kind, damage, caplog):
    path = next(path for path in files(made) if path.name.startswith(kind))
    raw = path.read_bytes()
    path.unlink()
    if damage == "emptied":
        path.touch()
    elif damage == "cut short":
        path.write_bytes(raw[:-1])
    elif damage == "prolonged":
        path.write_bytes(raw + b"\0")
    if (kind, damage) == ("index.json", "removed"):  # then there is no index
        assert is_right(made, TABLE).report.rebuilt == "there is none yet"
    else:
        is_rebuilt(made, path.name, caplog)


@pytest.mark.drill("damage")
@settings(max_examples=60)
@given(st.sampled_from(KINDS), st.floats(0, 1, exclude_max=True), st.integers(0, 7))
def test_a_flipped_bit_never_gives_another_result(kind, place, bit):
    """Wherever it is. Which id bears which text is not asked for here, but written anew: there it does no harm."""
    folder = new_folder()
    try:
        is_right(folder, LESS, mode="fast")
        is_right(folder, TABLE, mode="fast")
        path = next(path for path in files(folder) if path.name.startswith(kind))
        raw = bytearray(path.read_bytes())
        raw[int(place * len(raw))] ^= 1 << bit
        path.write_bytes(raw)
        more = TABLE | {"post:new": POOL[10] + "。", "post:other": "今天的天气真好，想出去走走，晒晒太阳再回来睡觉。"}
        noticed = is_right(folder, more, mode="fast").report.rebuilt is not None
        assert noticed == (kind != "members-")
    finally:
        shutil.rmtree(folder)


@pytest.mark.drill("damage")
def test_files_of_another_index_under_the_same_names_are_noticed(made, tmp_path):
    other = tmp_path / "other"
    is_right(other, {f"{one}!": f"{text}!" for one, text in LESS.items()})
    is_right(other, {f"{one}!": f"{text}!" for one, text in TABLE.items()})
    for kind in KINDS[1:]:
        ours, theirs = (next(folder.glob(f"{kind}*")) for folder in (made, other))
        ours.write_bytes(theirs.read_bytes())
        assert is_right(made, TABLE).report.rebuilt is not None


def test_the_index_of_other_texts_is_of_no_harm(made):
    foreign = {one: f"{text}!" for one, text in TABLE.items()}
    report = is_right(made, foreign).report
    assert report.known == 0
    assert report.gone == len(POOL)
    assert is_right(made, TABLE).report.hashed == len(POOL)


@pytest.mark.parametrize(
    "settings", [{"mode": "fast"}, {"seed": 2}, {"bands": (16, 8)}, {"num_perm": 256}, {"threshold": 0.7}]
)
def test_the_index_of_other_settings_is_made_anew(made, settings, caplog):
    is_rebuilt(made, "other settings", caplog, **settings)


def test_the_index_of_another_format_is_made_anew(made, caplog, monkeypatch):
    monkeypatch.setattr(remembered, "FORMAT", remembered.FORMAT + 1)
    is_rebuilt(made, "format", caplog)


def test_the_index_of_other_code_is_made_anew(made, caplog, monkeypatch):
    monkeypatch.setattr("pipelines.dedup.index.code_version", lambda *modules: "another")
    is_rebuilt(made, "other code", caplog)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_index_is_not_added_to(made, kind):
    """It cannot be made anew from the new texts alone."""
    path = next(path for path in files(made) if path.name.startswith(kind))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(GongqingError, match="added to no more"):
        Index(made).add(*columns({"post:new": POOL[10]}), lambda ids: pl.Series([TABLE[one] for one in ids]))
    is_right(made, TABLE)
    with pytest.raises(GongqingError, match="other settings"):
        Index(made, seed=2).add(*columns({"post:new": POOL[10]}), lambda ids: ids)


def test_a_damaged_index_is_forgotten_as_a_whole(made):
    path = next(made.glob("members-*"))
    path.write_bytes(path.read_bytes()[:-1])
    assert Index(made).forget(pl.Series(["post:12"])).is_empty()
    assert files(made) == []
    is_right(made, TABLE)


def test_files_that_are_not_of_an_index_are_left_alone(made):
    (made / "notes.txt").write_text("mine")
    (made / "run-of-luck").write_text("mine")
    (made / f"run-{'0' * 16}").write_text("of a process that was killed")
    is_right(made, TABLE)
    assert (made / "notes.txt").read_text() == (made / "run-of-luck").read_text() == "mine"
    assert not (made / f"run-{'0' * 16}").exists()


# kill −9


@contextlib.contextmanager
def _started(folder: Path, what: str, *step: str) -> Iterator["subprocess.Popen[str]"]:
    environment = os.environ | {"PYTHONPATH": str(Path(kill_index.__file__).parent)}
    command = [sys.executable, kill_index.__file__, folder, what, *step]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def _after_a_kill(folder: Path, what: str) -> str:
    """Looks at what a killed process left; returns the state that was found: none, before or after."""
    try:
        state = remembered.Remembered.load(folder)
    except remembered.Missing:
        assert what == "build"
        found = "none"
    else:
        ids, _ = state.members()
        left = set(ids)
        wanted = {"build": kill_index.BEFORE, "grow": kill_index.MORE, "change": kill_index.AFTER}.get(what, {})
        found = "before" if left == set(kill_index.BEFORE) and what != "build" else "after"
        if found == "after":
            assert left == set(wanted) if wanted else not left & set(kill_index.FORGOTTEN)
    if what == "forget":
        index = Index(folder)
        index.forget(pl.Series(kill_index.FORGOTTEN))
        assert not [one for one in kill_index.FORGOTTEN if one.encode() in bytes_of(folder)]
        assert strays(index) == []
    opened = is_right(folder, kill_index.AFTER, mode="fast")
    assert opened.report.rebuilt in (None, "there is none yet")
    assert (opened.report.rebuilt is None) == (found != "none")
    return found


@pytest.mark.drill("kill")
@pytest.mark.slow
@pytest.mark.parametrize("what", ["build", "grow", "change", "forget"])
def test_a_process_killed_at_any_step_leaves_the_state_before_or_after(tmp_path, what, capsys):
    before = tmp_path / "before"
    before.mkdir()
    if what != "build":
        kill_index.work(before, "build")

    shutil.copytree(before, tmp_path / "whole")
    with _started(tmp_path / "whole", what) as counting:
        told, errors = counting.communicate(timeout=240)
    assert counting.returncode == 0, errors
    n_steps, n_kills = int(told), 8

    found: Counter[str] = Counter()
    for i in range(n_kills):
        folder = tmp_path / f"killed-{i}"
        shutil.copytree(before, folder)
        # The last steps, from the manifest on, are few; half of the kills fall among them.
        step = n_steps * i * 2 // n_kills if i < n_kills // 2 else n_steps - 1 - (i - n_kills // 2) * 8
        with _started(folder, what, str(step)) as killed:
            _, errors = killed.communicate(timeout=240)
        assert killed.returncode == -signal.SIGKILL, errors
        found[_after_a_kill(folder, what)] += 1
    with capsys.disabled():
        print(f"\n{what}: {n_kills} × kill −9 over {n_steps} steps; found {dict(found)}")  # noqa: T201
    assert found["after"] > 0
    assert found["none" if what == "build" else "before"] > 0


@pytest.mark.drill("kill")
@pytest.mark.slow
def test_a_process_killed_at_a_random_moment(tmp_path):
    """Wherever it is then: in a kernel, in a call of the system, before the first line."""
    started = time.monotonic()
    kill_index.work(tmp_path / "before", "build")
    with _started(tmp_path / "whole", "grow") as whole:
        whole.communicate(timeout=240)
    lasts = time.monotonic() - started
    for i in range(6):
        folder = tmp_path / f"killed-{i}"
        shutil.copytree(tmp_path / "before", folder)
        with _started(folder, "grow") as process:
            time.sleep(lasts * (0.3 + 0.1 * i))
            process.kill()
            process.communicate(timeout=240)
        _after_a_kill(folder, "grow")


# Several processes


@pytest.mark.drill("race")
@pytest.mark.slow
def test_processes_at_once_wait_for_each_other(tmp_path):
    kill_index.work(tmp_path, "build")
    with contextlib.ExitStack() as running:
        for process in [running.enter_context(_started(tmp_path, what)) for what in ("grow", "change", "forget")]:
            _, errors = process.communicate(timeout=240)
            assert process.returncode == 0, errors
    assert is_right(tmp_path, kill_index.AFTER, mode="fast").report.rebuilt is None


# A disk that cannot be written


@pytest.mark.drill("disk")
def test_a_full_disk_costs_the_index_and_not_the_result(small_disk, caplog):
    folder, page = small_disk / "index", os.sysconf("SC_PAGESIZE")
    ids, texts = columns(TABLE)
    expected = find_duplicates(texts, ids=ids)
    full = 0
    for pages in range(30):
        is_right(folder, LESS)
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"\0" * (os.statvfs(small_disk).f_bavail - pages) * page)
        opened = Index(folder)
        with caplog.at_level(logging.WARNING, "pipelines.dedup.index"):
            assert_frame_equal(opened.clusters(ids, texts), expected)
        ballast.unlink()
        if opened.report.saved:
            break
        full += 1
        assert "No space left" in opened.report.rebuilt
        assert "cannot be kept" in caplog.text
        assert is_right(folder, LESS).report.rebuilt is None
    assert full > 3
    assert opened.report.saved


@pytest.mark.drill("disk")
def test_forgetting_on_a_full_disk_says_that_it_failed(small_disk):
    is_right(small_disk / "index", TABLE)
    before = bytes_of(small_disk / "index")
    (small_disk / "ballast").write_bytes(b"\0" * os.statvfs(small_disk).f_bavail * os.sysconf("SC_PAGESIZE"))
    with pytest.raises(OSError, match="No space left"):
        Index(small_disk / "index").forget(pl.Series(["post:12"]))
    assert bytes_of(small_disk / "index") == before
    (small_disk / "ballast").unlink()
    Index(small_disk / "index").forget(pl.Series(["post:12"]))
    assert b"post:12" not in bytes_of(small_disk / "index")
