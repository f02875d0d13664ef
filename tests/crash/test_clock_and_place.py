"""A wrong clock, another time zone, the locale C, another hash seed, an odd path behind a link: the same versions."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_model import FakePool
from killing import IMPORT_POSTS, current, done, home_with, require_sound

from pipelines.flow.refresh import refresh
from pipelines.settings import ROOT, Settings

pytestmark = [pytest.mark.slow, pytest.mark.drill("place"), pytest.mark.timeout(1200)]

# As the command does it, without Dagster: stages of every kind, rows cleaned, grouped, drawn, and answers of a model.
REFRESH = """
import sys
from fake_model import FakePool
from pipelines.flow.refresh import refresh
from pipelines.settings import Settings, home
refresh(home(), Settings(), sys.argv[1:], FakePool(None, Settings().llm))
"""
GROUPS = ("clean", "unique", "sample", "annotate")
ELSEWHERE = {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "7"}


@pytest.fixture
def behind(tmp_path: Path) -> dict[str, str]:
    """The environment of a process whose clock is three years behind."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("a shifted clock needs a C compiler")
    library, source = tmp_path / "shifted_clock.so", Path(__file__).with_name("shifted_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    environment = {"LD_PRELOAD": str(library)}
    clock = [sys.executable, "-c", "import time; print(time.time())"]
    then = float(subprocess.run(clock, env=environment, capture_output=True, check=True).stdout)
    assert time.time() - then > 2 * 365 * 86400
    return environment


def test_the_versions_follow_from_the_rows_and_from_nothing_else(sample_home, tmp_path, behind):
    home, link = tmp_path / "语料 库 a'b\"c", tmp_path / "link"
    home_with(sample_home, home, ["imported_dialogues"])
    link.symlink_to(home)
    done(link, *IMPORT_POSTS, **ELSEWHERE, **behind)
    done(link, "refresh", "--select", "clean_posts", **ELSEWHERE, **behind)
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'doubles'}"}
    done(link, *GROUPS, program=(sys.executable, "-c", REFRESH), **path, **ELSEWHERE, **behind)
    assert len(current(home)) > 8
    assert current(home).items() <= current(sample_home).items()
    outcomes = refresh(home, Settings(), GROUPS, FakePool(None, Settings().llm))
    assert [outcome for outcome in outcomes if outcome.ran] == [], "it is up to date where the clock is right"
    require_sound(home)
