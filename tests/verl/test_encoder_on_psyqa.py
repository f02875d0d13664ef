"""E's reward on real questions: what it pays for with the tiny encoder, trained here on the others of PsyQA."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from train_env import require_train_env

from benchmarks.reward_model import made, paid, served, trained, tried, written

FOLD, HIDDEN, EPOCHS = 3, 768, 2


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Callable[[str], float]:
    """Of a kind of answers to the questions of the test split, the share that is paid for."""
    require_train_env()
    folder = tmp_path_factory.mktemp("psyqa")
    store = made(folder / "home")
    kept = written(store, FOLD, folder)
    trained(folder, HIDDEN, EPOCHS, "first")
    positives = dict(kept.filter(split="test").select("made_from", "positive_id").iter_rows())
    posts = store.read("unique_posts").collect().filter(pl.col("post_id").is_in(list(positives)))
    with served(folder / "model"):
        found = asyncio.run(paid(tried(posts.to_dicts(), positives)))
    assert len(found["echo"]) == len(positives) >= 8
    return lambda kind: sum(one["guarded"] for one in found[kind]) / len(found[kind])


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("training")
def test_siblings_pass_and_hacks_do_not(share: Callable[[str], float]):
    """docs/reward-models.md has the figures over all questions; the limits here leave room for a fold of nine."""
    assert share("echo") == 0
    assert share("generic") <= 0.1
    assert share("quoted") <= 0.1
    assert share("other_answer") <= 0.12
    assert share("sibling") >= 0.6
