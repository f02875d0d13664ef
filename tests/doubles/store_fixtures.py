"""A store on each kind of storage."""

from pathlib import Path

import pytest
from object_store import ObjectStore

from pipelines.store import Store


@pytest.fixture(params=["local folder", "object store"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store; a law of the store holds whatever the storage."""
    return Store(tmp_path / "data", None if request.param == "local folder" else ObjectStore(tmp_path))


@pytest.fixture
def local(tmp_path: Path) -> Store:
    """An empty store in a local folder."""
    return Store(tmp_path / "data")
