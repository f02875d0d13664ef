"""Homes to erase from."""

import shutil
from pathlib import Path

import pytest
from erase_home import make_home


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A small home with something of every kind in it (`erase_home`). Read only."""
    home = tmp_path_factory.mktemp("made") / "home"
    make_home(home)
    return home


@pytest.fixture
def home(made, tmp_path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "here"))
