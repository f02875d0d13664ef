"""A disk that fills up under each command: an error that says so, nothing lost, and the same command then finishes."""

import shutil

import pytest
from killing import IMPORT_POSTS, broken, current, done, failed, home_with, leftovers

from pipelines.store.releases import Releases

pytestmark = [pytest.mark.slow, pytest.mark.drill("disk"), pytest.mark.timeout(1200)]


def is_full(message: str) -> None:
    assert "no room left on the device" in message
    assert "free some space" in message


def test_an_import(disk, sample_home):
    """On 20 kB Dagster cannot make its tables, on 200 and 400 kB it is in the midst of them, or of its run."""
    home = disk.folder
    shutil.copy(sample_home / "author.key", home)
    for free in (20_000, 200_000, 400_000):
        disk.leave(free)
        is_full(failed(home, *IMPORT_POSTS))
        assert leftovers(home) == []
    disk.leave(None)
    done(home, *IMPORT_POSTS)
    assert current(home) == {"imported_posts/sample": current(sample_home)["imported_posts/sample"]}
    assert broken(home) == []


def test_a_refresh(disk, sample_home):
    sources = ("imported_posts", "imported_dialogues")
    home = home_with(sample_home, disk.folder, sources)
    for free in (20_000, 800_000):
        disk.leave(free)
        is_full(failed(home, "refresh", "--select", "clean"))
        assert leftovers(home) == []
    disk.leave(None)
    done(home, "refresh", "--select", "clean")
    wanted = {f"{name}/sample" for name in sources} | {"clean_posts", "clean_dialogues"}
    assert current(home) == {name: one for name, one in current(sample_home).items() if name in wanted}
    assert broken(home) == []


# What the tables of `labelled_store` were made with (labels_made.LABELLED).
LABELLED = """
[rewrite]
variants = ["D", "R", "P"]

[annotate]
human_answers = false
"""


def test_a_release_and_its_export(disk, labelled_store):
    """A release appears whole or not at all, and so does a folder that is given away."""
    home = disk.folder
    shutil.copytree(labelled_store.storage.root, home / "data")
    (home / "gongqing.toml").write_text(LABELLED, encoding="utf-8")
    release = ("release", "v1", "--allow", "not_from_a_model")
    disk.leave(30_000)
    is_full(failed(home, *release))
    assert list(Releases(home).names()) == []
    assert leftovers(home) == []
    disk.leave(None)
    done(home, *release)
    given = home / "given"
    disk.leave(30_000)
    for form in (("folder", str(given)), ("jsonl", str(given), "--for", "openai")):
        message = failed(home, "export", *form)
        is_full(message)
        assert f"where: {given}" in message
        assert [path for path in home.iterdir() if given.name in path.name] == [], "nothing half written"
    disk.leave(None)
    done(home, "export", "folder", str(given))
    assert (given / "manifest.json").exists()
