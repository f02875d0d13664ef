"""What may be read by others of this machine, under umasks as most have them: nothing of a home, and of an export what
its user lets them.
"""

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from killing import IMPORT_POSTS, done

pytestmark = [pytest.mark.drill("privacy"), pytest.mark.slow]

NOBODY = 65534


def modes_of(folder: Path) -> list[set[int]]:
    """Of folders, and of files."""
    paths = [folder, *folder.rglob("*")]
    return [{stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir() is kind} for kind in (True, False)]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Made by the command line, below a folder that everybody may enter."""
    above = Path(tempfile.mkdtemp())
    above.chmod(0o755)
    home = above / "corpus"
    try:
        done(home, *IMPORT_POSTS, umask=0o022, GONGQING_AUTHOR_KEY="for the tests alone, 16 bytes")
        yield home
    finally:
        shutil.rmtree(above)


def what_nobody_reads(home: Path) -> list[str]:
    if os.geteuid() != 0:
        pytest.skip("to be another user needs root")
    nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
    find = ["find", home, "-type", "f", "-readable"]  # fails where it may not enter
    return subprocess.run(find, capture_output=True, text=True, **nobody).stdout.splitlines()


def test_nothing_in_a_home_is_open_to_others(home):
    assert (home / ".dagster").is_dir()
    assert "ok       permissions" in done(home, "doctor", umask=0o022)
    assert [str(path) for path in (home, *home.rglob("*")) if path.lstat().st_mode & 0o077] == []
    assert what_nobody_reads(home) == []


def test_a_home_that_was_open_is_named_by_the_doctor_and_closed_by_the_next_command(home):
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert f"chmod -R go= {home} {home / '.dagster'}" in done(home, "doctor", umask=0o022)
    assert stat.S_IMODE(home.stat().st_mode) == 0o755, "to look changes nothing"
    done(home, "tables", umask=0o022)
    assert stat.S_IMODE(home.stat().st_mode) == stat.S_IMODE((home / ".dagster").stat().st_mode) == 0o700
    assert what_nobody_reads(home) == []


def test_an_export_elsewhere_has_the_users_modes_and_in_the_home_nobody_elses(released_home, tmp_path):
    home = Path(shutil.copytree(released_home, tmp_path / "corpus"))
    done(home, "export", "folder", str(tmp_path / "given" / "on" / "away"), umask=0o027)
    assert modes_of(tmp_path / "given") == [{0o750}, {0o640}]
    for target, modes in ((tmp_path / "out", [{0o755}, {0o644}]), (home / "out", [{0o700}, {0o600}])):
        done(home, "export", "jsonl", "--for", "openai", str(target), umask=0o022)
        assert modes_of(target) == modes
