"""A wrong clock, another time zone, the locale C, another hash seed, an odd path behind a link: the same versions."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from killing import broken, current, done, leftovers

from pipelines.settings import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.drill("place"), pytest.mark.timeout(1200)]

SAMPLES = ROOT / "samples"
# Stages of every kind: rows cleaned, grouped, drawn, and answers of a model.
REFRESH = ("refresh", *(word for group in ("clean", "unique", "sample", "annotate") for word in ("--select", group)))
ELSEWHERE = {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "7"}


@pytest.fixture
def behind(tmp_path: Path) -> dict[str, str]:
    """The environment of a process whose clock is three years behind."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("a shifted clock needs a C compiler")
    library = tmp_path / "shifted_clock.so"
    source = Path(__file__).with_name("shifted_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    environment = {"LD_PRELOAD": str(library)}
    told = [sys.executable, "-c", "import time; print(time.time())"]
    then = float(subprocess.run(told, env=environment, capture_output=True, check=True).stdout)
    assert time.time() - then > 2 * 365 * 86400
    return environment


def test_the_versions_follow_from_the_rows_and_from_nothing_else(sample_home, tmp_path, behind):
    home, link = tmp_path / "语料 库 a'b\"c", tmp_path / "link"
    home.mkdir()
    link.symlink_to(home)
    shutil.copy(sample_home / "author.key", home)
    for kind in ("posts", "dialogues"):
        file = SAMPLES / f"{kind}.jsonl"
        mapping = str(file.with_suffix(".toml"))
        done(link, "import", "mapped", str(file), "--mapping", mapping, "--as", "sample", **ELSEWHERE, **behind)
    done(link, *REFRESH, **ELSEWHERE, **behind)
    assert len(current(home)) > 8
    assert current(home).items() <= current(sample_home).items()
    assert "everything" in done(link, *REFRESH), "is up to date where the clock is right"
    assert broken(home) == []
    assert leftovers(home) == []
