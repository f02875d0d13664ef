"""A home to train in, shared by all that train: one worker makes it, once."""

import shutil
from pathlib import Path

import pytest
from labels_made import LABELLED
from train_env import require_train_env

from pipelines.releasing import release
from pipelines.store import Store


@pytest.fixture(scope="session")
def training_home(sample_home: Path, labelled_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample home with labels that people will give, and a release of it, `v1`, in which every set has rows. Runs
    may be added.
    """
    require_train_env()
    home = tmp_path_factory.mktemp("training") / "home"
    shutil.copytree(sample_home, home, ignore=shutil.ignore_patterns("data"))
    shutil.copytree(labelled_store.storage.root, home / "data")
    release(home, "v1", allow=["rules_rows"], settings=LABELLED)
    return home
