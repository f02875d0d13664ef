"""An empty store."""

from pathlib import Path

import pytest

from pipelines.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "data")
