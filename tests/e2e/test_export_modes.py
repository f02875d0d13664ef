"""An export outside of the home is its user's: it has the modes of the umask that the command was called under."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.release.publish.folder import made_whole
from pipelines.settings import ROOT


def modes_of(folder: Path) -> tuple[set[int], set[int]]:
    """Of folders, and of files."""
    paths = [folder, *folder.rglob("*")]
    found = [{stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir() is kind} for kind in (True, False)]
    return found[0], found[1]


@pytest.fixture
def home(mixed, tmp_path) -> Path:
    return Path(shutil.copytree(mixed.releases.home, tmp_path / "corpus"))


def run(home: Path, *arguments: str | Path, umask: int) -> None:
    subprocess.run(
        [sys.executable, "-c", "import pipelines.cli; pipelines.cli.main()", *map(str, arguments)],
        env={**os.environ, "GONGQING_HOME": str(home), "PYTHONPATH": str(ROOT)},
        umask=umask,
        check=True,
    )


@pytest.mark.drill("privacy")
def test_a_folder_elsewhere_has_the_users_modes(home, mixed, tmp_path):
    target = tmp_path / "given" / "away"
    run(home, "export", "folder", target, "--release", mixed.release.name, umask=0o027)
    assert modes_of(target.parent) == ({0o750}, {0o640})


@pytest.mark.drill("privacy")
def test_files_for_other_trainers_have_the_users_modes_and_in_the_home_nobody_elses(home, mixed, tmp_path):
    told = ("export", "jsonl", "--for", "openai", "--release", mixed.release.name)
    run(home, *told, tmp_path / "out", umask=0o022)
    assert modes_of(tmp_path / "out") == ({0o755}, {0o644})
    run(home, *told, home / "out", umask=0o022)
    assert modes_of(home / "out") == ({0o700}, {0o600})


def test_folders_on_the_way_are_the_users_too(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.core.modes._umask", [0o022])
    before = os.umask(0o077)
    try:
        with made_whole(tmp_path / "a" / "b" / "out", tmp_path / "home") as staged:
            assert stat.S_IMODE(staged.stat().st_mode) == 0o700
            (staged / "file").touch()
    finally:
        os.umask(before)
    assert modes_of(tmp_path / "a") == ({0o755}, {0o644})
