"""A home to train in, shared by all that train: one worker makes it, once."""

import shutil
from pathlib import Path

import pytest
from dagster_fixtures import instance
from fake_model import FakePool
from labels_made import LABELLED
from train_env import Trained, require_train_env, train_experiment, trained

from pipelines.flow.runner import Runner
from pipelines.flow.stages import STAGES
from pipelines.operations.release import release
from pipelines.settings import Rewrite
from pipelines.store import Store

__all__ = ["instance"]


@pytest.fixture(scope="session")
def training_home(
    sample_home: Path, labelled_store: Store, released_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The sample home with labels that people will give, and a release of it, `v1`, in which every set has rows. Runs
    may be added.
    """
    require_train_env()
    home = tmp_path_factory.mktemp("training") / "home"
    shutil.copytree(sample_home, home, ignore=shutil.ignore_patterns("data"))
    shutil.copytree(labelled_store.storage.root, home / "data")
    shutil.copytree(released_home / "readings", home / "readings")  # what was read once is not read again
    release(home, "v1", allow=["not_from_a_model"], settings=LABELLED)
    return home


@pytest.fixture(scope="session")
def persona_home(training_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, rewritten as the settings have it by default: by personality alone (P)."""
    home = tmp_path_factory.mktemp("personas") / "home"
    for part in ("data", "readings"):
        shutil.copytree(training_home / part, home / part)
    settings = LABELLED.model_copy(update={"rewrite": Rewrite()})
    clients = FakePool(None, settings.llm)
    for stage in STAGES:
        if stage.group in ("rewrite", "prompts", "training"):
            Runner(Store(home / "data"), settings, clients).run(stage)
    release(home, "v1", allow=["not_from_a_model"], settings=settings)
    return home


@pytest.fixture(scope="session")
def warm_start(training_home: Path) -> Path:
    """The folder of a run of `empathy_sft` that has come to its end."""
    return trained(training_home, "empathy_sft", "warm")


@pytest.fixture(scope="session")
def experiment(training_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train_experiment(training_home, tmp_path_factory.mktemp("experiment"))
