"""A disk that fills up under each command, or may only be read: an error that says so, and nothing is lost."""

import shutil

import pytest
from killing import IMPORT_POSTS, Command, current, done, failed, home_with, leftovers, require_sound
from labels_made import LABELLED_TOML

from pipelines.store.releases import Releases

pytestmark = [pytest.mark.slow, pytest.mark.drill("disk"), pytest.mark.timeout(1200)]


def full(disk, *arguments: str, free: int) -> str:
    """The message of a command for which there is no room."""
    disk.leave(free)
    message = failed(disk.folder, *arguments)
    assert "no room left on the device" in message
    assert "free some space" in message
    assert leftovers(disk.folder) == []
    return message


def test_an_import(disk, sample_home):
    """On 20 kB Dagster cannot make its tables, on 400 kB it is in the midst of them, or of its run."""
    home = disk.folder
    shutil.copy(sample_home / "author.key", home)
    for free in (20_000, 400_000):
        full(disk, *IMPORT_POSTS, free=free)
    disk.leave(None)
    done(home, *IMPORT_POSTS)
    assert current(home) == {"imported_posts/sample": current(sample_home)["imported_posts/sample"]}
    require_sound(home)


def test_a_refresh(disk, sample_home):
    parents = ("unique_posts", "splits", "topics")
    home = home_with(sample_home, disk.folder, ("imported_posts", *parents))
    full(disk, "refresh", "--select", "grpo_ecot", free=800_000)
    disk.leave(None)
    done(home, "refresh", "--select", "grpo_ecot")
    wanted = {"imported_posts/sample", *parents, "grpo_ecot"}
    assert current(home) == {name: one for name, one in current(sample_home).items() if name in wanted}
    require_sound(home)


def test_a_release_and_its_export(disk, labelled_store, released_home):
    """A release appears whole or not at all, and so does a folder that is given away."""
    home = disk.folder
    shutil.copytree(labelled_store.storage.root, home / "data")
    (home / "gongqing.toml").write_text(LABELLED_TOML, encoding="utf-8")
    release, given = ("release", "v1", "--allow", "not_from_a_model"), home / "given"
    full(disk, *release, free=30_000)  # while it is noted what was read for personal data
    disk.leave(None)
    shutil.copytree(released_home / "readings", home / "readings", dirs_exist_ok=True)
    full(disk, *release, free=30_000)
    assert list(Releases(home).names()) == []
    disk.leave(None)
    done(home, *release)
    for form in (("folder", str(given)), ("jsonl", str(given), "--for", "openai")):
        assert f"where: {given}" in full(disk, "export", *form, free=30_000)
        assert [path for path in home.iterdir() if given.name in path.name] == [], "nothing half written"
    disk.leave(None)
    done(home, "export", "folder", str(given))
    assert (given / "manifest.json").exists()


def test_a_home_that_can_only_be_read(disk, sample_home, tmp_path):
    """What only looks works, whatever else says why it does not."""
    tables = ("imported_posts", "clean_dialogues", "unique_posts", "splits", "topics")
    home = home_with(sample_home, disk.folder, tables)
    disk.remount("ro")
    given = tmp_path / "given"
    for arguments in (("refresh",), IMPORT_POSTS, ("release", "v1"), ("export", "folder", str(given))):
        message = failed(home, *arguments)
        assert "Read-only file system" in message
        assert f"where: {home}" in message
        assert "mount it for writing" in message
    assert not given.exists()
    assert "clean_dialogues" in done(home, "tables")
    assert "dialogue_id" in done(home, "show", "clean_dialogues", "-n", "1", "--json")
    with Command(home, "doctor") as doctor:
        assert doctor.wait() == 1
        assert f"{home} cannot be written to" in doctor.printed
    disk.remount("rw")
    done(home, "refresh", "--select", "grpo_ecot")
