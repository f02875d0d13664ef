"""`gongqing import` killed as it starts, before its run begins, as it writes, and after: the next one is whole."""

import random
import shutil
from pathlib import Path

import pytest
from killing import (
    IMPORT_POSTS,
    broken,
    creates_a_run,
    current,
    done,
    killed,
    leftovers,
    open_runs,
    publishes,
    starts,
    versions,
    writes,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.drill("kill"),
    pytest.mark.xdist_group("killed imports"),
    pytest.mark.timeout(1200),
]

MOMENTS = [(starts, 3.0), (creates_a_run, 0.0), (writes, 0.0), (publishes("imported_posts"), 0.02)]


@pytest.fixture(scope="module")
def home(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home into which an import was killed at each of the moments; the last one was left alone."""
    home = tmp_path_factory.mktemp("killed") / "home"
    home.mkdir()
    shutil.copy(sample_home / "author.key", home)  # the pseudonyms, and so the version, follow from it
    chance = random.Random(16)
    for when, at_most in MOMENTS:
        killed(home, *IMPORT_POSTS, when=when, seconds=chance.uniform(0, at_most))
    done(home, *IMPORT_POSTS)
    return home


def test_the_rows_are_those_of_an_import_that_nobody_killed(home, sample_home):
    place = "imported_posts/sample"
    assert versions(home) == {place: [current(sample_home)[place]]}
    assert broken(home) == []


def test_nothing_is_left_of_a_killed_import(home):
    assert leftovers(home) == []


def test_no_run_of_a_killed_import_stays_open(home):
    assert open_runs(home) == {}
