"""What the store promises it promises on a local disk and in a bucket."""

from pathlib import Path

import pytest

from pipelines.store import Store


@pytest.fixture(params=["a local disk", "a bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store."""
    if request.param == "a bucket":
        request.getfixturevalue("bucket")
    return Store(tmp_path / "data")
