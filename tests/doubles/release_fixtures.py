"""A release of a home with an invented and a crawled source, made once."""

from typing import NamedTuple

import pytest
from published_rows import NAME, home_with, make_release, training_sets

from pipelines.store import Store
from pipelines.store.release_manifest import Release
from pipelines.store.releases import Releases


class Made(NamedTuple):
    store: Store
    releases: Releases
    release: Release


@pytest.fixture(scope="session")
def mixed(sample_home, tmp_path_factory) -> Made:
    """Read only."""
    home = tmp_path_factory.mktemp("mixed-home")
    store = home_with(Store(sample_home / "data"), home / "data")
    releases = Releases(home)
    return Made(store, releases, make_release(releases, store, training_sets(store), NAME))
