"""One refresh at a time, in order, telling what it did."""

import multiprocessing
import os
import shutil
from pathlib import Path

import pytest

from pipelines.errors import Busy, RequestError, UnknownName
from pipelines.making import run_stage
from pipelines.refresh import budget_name, chosen, refresh
from pipelines.settings import Settings
from pipelines.stages import STAGES
from pipelines.store import Store


def _hold(home: Path, ready, done) -> None:
    def wait(_stage) -> None:
        ready.set()
        done.wait(60)

    next(iter(refresh(home, Settings(seed=1), wait, ["splits"])))


def test_everything_is_chosen_where_nothing_is_named():
    assert chosen([]) == list(STAGES)


def test_a_group_a_stage_or_a_table_can_be_named():
    assert [stage.name for stage in chosen(["prompts"])] == ["grpo_ecot", "grpo_coe", "grpo_cer"]
    assert [stage.name for stage in chosen(["training"])][:3] == ["sft_coe", "sft_cer", "rm_triplets"]
    assert [stage.name for stage in chosen(["unique_posts"])] == ["unique"]
    assert [stage.name for stage in chosen(["grpo_cer", "clean"])] == ["clean_posts", "clean_dialogues", "grpo_cer"]


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'grpo_cer'"):
        chosen(["grpo_cerr"])


def test_a_home_without_data_has_nothing_to_refresh(tmp_path):
    with pytest.raises(RequestError, match="gongqing import"):
        list(refresh(tmp_path, Settings(), lambda _: None))


def test_a_second_refresh_runs_nothing(sample_home):
    outcomes = list(refresh(sample_home, Settings(), lambda stage: pytest.fail(stage.name)))
    assert [outcome.ran for outcome in outcomes] == [False] * len(STAGES)
    assert {version.table for outcome in outcomes for version in outcome.versions} == {
        table for stage in STAGES for table in stage.tables
    }


def test_only_one_refresh_at_a_time(sample_home):
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(sample_home, ready, done))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(Busy, match=f"process {other.pid} on "):
            list(refresh(sample_home, Settings(), lambda _: None))
    finally:
        done.set()
        other.join(60)


def test_a_lock_left_by_a_dead_process_holds_nobody_up(sample_home):
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(sample_home, ready, done))
    other.start()
    assert ready.wait(60)
    os.kill(other.pid, 9)
    other.join(60)
    assert list(refresh(sample_home, Settings(), lambda _: None))


def test_stages_that_fail_stop_the_refresh(tmp_path, sample_home):
    store = Store(tmp_path / "data")
    store.write("imported_posts", Store(sample_home / "data").read("imported_posts"), partition="sample")
    ran = []

    def run(stage) -> None:
        ran.append(stage.name)
        if stage.name == "unique":
            raise RuntimeError("as a crash would")
        run_stage(stage, store, Settings())

    with pytest.raises(RuntimeError):
        list(refresh(tmp_path, Settings(), run))
    assert ran == ["clean_posts", "clean_dialogues", "unique"]
    assert store.current("unique_posts") == []


@pytest.mark.parametrize("file", ["current.json", "*/manifest.json"])
def test_a_damaged_table_of_questions_stops_no_refresh(tmp_path, sample_home, file):
    """Its pointer alone: the version tells who answered, and it is made anew. All that could tell: it waits."""
    shutil.copytree(sample_home, tmp_path, dirs_exist_ok=True)
    for damaged in (tmp_path / "data" / "topics").glob(file):
        damaged.write_text("{", encoding="utf-8")
    store = Store(tmp_path / "data")
    told = {
        one.stage.name: one for one in refresh(tmp_path, Settings(), lambda stage: run_stage(stage, store, Settings()))
    }
    assert set(told) == {stage.name for stage in STAGES}
    if file == "current.json":
        assert told["topics"].ran
        assert [version.table for version in told["topics"].versions] == ["topics"]
    else:
        assert "gongqing refresh --provider" in told["topics"].waits
        assert "topics was never made, or is damaged" in told["ecot_chains"].waits


def test_a_refresh_of_something_else_spends_from_another_budget():
    assert budget_name([]) == budget_name(["annotate", "rewrite"]) == "refresh"
    assert budget_name(["topics"]) == "refresh:topics"
    assert budget_name(["emotions", "topics", "clean"]) == budget_name(["topics", "emotions"])
    assert budget_name(["topics", "emotions"]) == "refresh:topics,emotions"
