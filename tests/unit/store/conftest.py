"""What the store promises it promises on a local disk and in a bucket."""

from pathlib import Path

import pytest

from pipelines.store import Store


@pytest.fixture(params=["a local disk", "a bucket"])
def where(request: pytest.FixtureRequest) -> str:
    """Where the tables and releases of every home lie."""
    if request.param == "a bucket":
        request.getfixturevalue("bucket")
    return request.param


@pytest.fixture
def store(where: str, tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "data")
