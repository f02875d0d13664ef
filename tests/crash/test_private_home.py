"""Another user of this machine, and a umask of 022, as most have it."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.settings import ROOT

pytestmark = [pytest.mark.drill("privacy"), pytest.mark.slow]

SAMPLE = ROOT / "samples" / "dialogues.jsonl"
NOBODY = 65534


def gongqing(home: Path, *arguments: str | Path) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", "import pipelines.cli; pipelines.cli.main()", *map(str, arguments)],
        env={**os.environ, "GONGQING_HOME": str(home), "PYTHONPATH": str(ROOT)},
        umask=0o022,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Made by the command line, below a folder that everybody may enter."""
    above = Path(tempfile.mkdtemp())
    above.chmod(0o755)
    home = above / "corpus"
    try:
        gongqing(home, "import", "mapped", SAMPLE, "--mapping", SAMPLE.with_suffix(".toml"), "--as", "sample")
        gongqing(home, "refresh", "--select", "clean_dialogues")
        yield home
    finally:
        shutil.rmtree(above)


def opened(home: Path) -> list[str]:
    """What of a home has a bit of its group's or of everybody's."""
    return [str(path) for path in (home, *home.rglob("*")) if path.lstat().st_mode & 0o077]


def what_nobody_reads(home: Path) -> list[str]:
    if os.geteuid() != 0:
        pytest.skip("to be another user needs root")
    nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    found = subprocess.run(["find", home, "-type", "f", "-readable"], cwd="/", capture_output=True, text=True, **nobody)
    return found.stdout.splitlines()


def test_nothing_in_a_home_is_open_to_others(home):
    assert (home / ".dagster").is_dir()
    assert "ok       permissions" in gongqing(home, "doctor")
    assert opened(home) == []
    assert what_nobody_reads(home) == []


def test_a_home_that_was_open_is_named_by_the_doctor_and_closed_by_the_next_command(home):
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    [line] = [line for line in gongqing(home, "doctor").splitlines() if "permissions" in line]
    assert line.startswith("warning")
    assert f"chmod -R go= {home} {home / '.dagster'}" in line
    assert stat.S_IMODE(home.stat().st_mode) == 0o755, "to look changes nothing"
    gongqing(home, "tables")
    assert stat.S_IMODE(home.stat().st_mode) == stat.S_IMODE((home / ".dagster").stat().st_mode) == 0o700
    assert what_nobody_reads(home) == []
