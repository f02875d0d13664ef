"""Who may read a home: what is closed, what is left as its owner shares it, and what is handed over."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.core import modes
from pipelines.settings import ROOT


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def home(tmp_path) -> Path:
    """As an earlier version left one, under a umask of 022."""
    home = tmp_path / "old"
    for folder in (home, home / ".dagster", home / "data", home / "index"):
        folder.mkdir()
        folder.chmod(0o755)
    for file in ("ledger.sqlite", "ledger.sqlite-wal", "allowance.json", ".dagster/runs.db", "gongqing.toml"):
        (home / file).touch()
        (home / file).chmod(0o644)
    return home


def test_a_home_of_an_earlier_version_is_closed(home):
    modes.close(home)
    assert {mode(path) for path in (home, home / ".dagster", home / "data", home / "index")} == {0o700}
    assert {mode(home / name) for name in ("ledger.sqlite", "ledger.sqlite-wal", "allowance.json")} == {0o600}
    assert modes.open_to_others(home) == {}


def test_a_folder_that_holds_other_things_keeps_its_mode_and_they_keep_theirs(home):
    """The default home is the repository."""
    (home / "README.md").touch()
    (home / "README.md").chmod(0o644)
    modes.close(home)
    assert mode(home) == 0o755
    assert mode(home / "README.md") == mode(home / "gongqing.toml") == 0o644
    assert {mode(home / name) for name in (".dagster", "data", "index")} == {0o700}


def test_a_folder_that_everybody_or_a_group_alone_shares_keeps_its_mode_and_is_named(home):
    (home / "data").chmod(0o2770)
    for of_home in (0o1777, 0o750):
        home.chmod(of_home)
        modes.close(home)
        assert (mode(home), mode(home / "data")) == (of_home, 0o2770)
    assert modes.open_to_others(home) == {home: 1, home / "data": 1}


def test_what_others_may_read_is_counted_as_far_as_they_get(home):
    ones = {home / name: 1 for name in ("data", "index", "ledger.sqlite", "ledger.sqlite-wal", "allowance.json")}
    assert modes.open_to_others(home) == {home: 1, home / ".dagster": 2, **ones}
    (home / ".dagster").chmod(0o700)
    assert home / ".dagster" not in modes.open_to_others(home), "nobody else gets to what is in it"
    home.chmod(0o700)
    assert modes.open_to_others(home) == {}
    modes.close(home / "none")
    assert modes.open_to_others(home / "none") == {}


def test_what_is_handed_over_has_the_modes_that_the_user_gives(tmp_path, monkeypatch):
    monkeypatch.setattr(modes, "_umask", [0o027])
    folder, file = tmp_path / "out", tmp_path / "out" / "file"
    folder.mkdir(mode=0o700)
    file.touch(mode=0o600)
    folder.chmod(0o2700)
    modes.hand_over(folder)
    modes.hand_over(file)
    assert (mode(folder), mode(file)) == (0o2750, 0o640)
    monkeypatch.setattr(modes, "_umask", [])  # without `keep_private` the user has given the modes already
    file.chmod(0o600)
    modes.hand_over(file)
    assert mode(file) == 0o600


MAIN = "import contextlib, pipelines.{} as it\nwith contextlib.suppress(SystemExit): it.main()"
STARTED = {
    "code location": "import pipelines.definitions",
    "daemon": "from pipelines.defs.instance import HomeStorage; HomeStorage.from_config_value(None, {})",
    "judge": MAIN.format("judge.service"),
    "encoder": MAIN.format("train.encoder"),
}


@pytest.mark.parametrize("process", STARTED.values(), ids=STARTED)
def test_a_process_that_is_started_on_its_own_keeps_private(process, tmp_path):
    command = [sys.executable, "-c", process + "\nimport os; os.mkdir('made')"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=tmp_path, env=environment, umask=0o022, check=True)
    assert mode(tmp_path / "made") == 0o700
