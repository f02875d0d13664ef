"""One refresh at a time, in order, telling what it did."""

import multiprocessing
import os
import shutil
import time
from functools import partial
from pathlib import Path

import pytest
from fake_model import FakePool
from older_home import manifest_of, rewrite, say

from pipelines.defs.instance import instance
from pipelines.defs.running import run_stages
from pipelines.errors import Busy, DamagedVersion, NewerHome, OlderSchema, RequestError, UnknownName
from pipelines.flow.refresh import budget_name, chosen, refresh
from pipelines.flow.stages import STAGES
from pipelines.settings import Filters, Settings
from pipelines.store import Store


def _hold(home: Path, ready) -> None:
    def wait(*_) -> None:
        ready.set()
        time.sleep(60)

    refresh(home, Settings(seed=1), ["splits"], run=wait)


def test_a_group_a_stage_or_a_table_can_be_named():
    assert chosen([]) == list(STAGES)
    assert [stage.name for stage in chosen(["prompts"])] == ["grpo_ecot", "grpo_coe", "grpo_cer"]
    assert [stage.name for stage in chosen(["unique_posts"])] == ["unique"]
    assert [stage.name for stage in chosen(["grpo_cer", "clean"])] == ["clean_posts", "clean_dialogues", "grpo_cer"]
    with pytest.raises(UnknownName, match="did you mean 'grpo_cer'"):
        chosen(["grpo_cerr"])


def test_a_refresh_of_something_else_spends_from_another_budget():
    assert budget_name([]) == budget_name(["annotate", "rewrite"]) == "refresh"
    assert budget_name(["emotions", "topics", "clean"]) == budget_name(["topics", "emotions"])
    assert budget_name(["topics", "emotions"]) == "refresh:topics,emotions"


def test_a_home_without_data_has_nothing_to_refresh(tmp_path):
    with pytest.raises(RequestError, match="gongqing import"):
        refresh(tmp_path, Settings())


def test_a_second_refresh_runs_nothing(sample_home):
    outcomes = refresh(sample_home, Settings(), run=lambda *_: pytest.fail("nothing is due"))
    assert [outcome.ran for outcome in outcomes] == [False] * len(STAGES)
    tables = {table for stage in STAGES for table in stage.tables}
    assert {version.table for outcome in outcomes for version in outcome.versions} == tables


@pytest.mark.drill("kill")
def test_only_one_refresh_at_a_time_and_the_lock_of_a_dead_process_holds_nobody_up(sample_home):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(sample_home, ready))
    holder.start()
    try:
        assert ready.wait(60)
        with pytest.raises(Busy, match=f"process {holder.pid} on "):
            refresh(sample_home, Settings())
    finally:
        holder.kill()
        holder.join(60)
    assert refresh(sample_home, Settings())


@pytest.fixture
def home(tmp_path: Path, sample_home: Path) -> Path:
    """A copy of the sample home, to be spoiled."""
    shutil.copytree(sample_home / "data", tmp_path / "data")
    return tmp_path


def refreshed(home: Path, *select: str, clients=None) -> dict:
    """The outcomes by stage."""
    return {one.stage.name: one for one in refresh(home, Settings(), select, clients)}


@pytest.mark.drill("damage")
@pytest.mark.parametrize("file", ["current.json", "*/manifest.json"])
def test_a_damaged_table_of_questions_stops_no_refresh(home, file):
    """Its pointer alone: the version tells who answered. All that could tell: it waits for somebody to say who does."""
    for damaged in (home / "data" / "topics").glob(file):
        damaged.write_text("{", encoding="utf-8")
    provider = None
    if file == "*/manifest.json":
        outcomes = refreshed(home)
        assert set(outcomes) == {stage.name for stage in STAGES}
        assert "gongqing refresh --provider" in outcomes["topics"].waits
        assert outcomes["ecot_chains"].waits == outcomes["topics"].waits  # it cannot read its parent
        provider = "openai"
    assert refreshed(home, "topics", clients=FakePool(None, Settings().llm, provider=provider))["topics"].ran
    assert not refreshed(home, "topics")["topics"].ran


@pytest.mark.drill("damage")
def test_in_a_run_of_dagster_what_waits_stops_nothing_and_what_is_up_to_date_costs_nothing(home, monkeypatch):
    """All stages that come after one that is due stand in the run of a command: each is made, or left, in its turn."""
    described = []
    monkeypatch.setattr("pipelines.defs.assets.describe", lambda version, _: described.append(version.table) or {})
    for damaged in (home / "data" / "topics").glob("*/manifest.json"):
        damaged.write_text("{", encoding="utf-8")
    first, second = (
        refresh(home, Settings(filters=Filters(max_post_chars=most)), run=partial(run_stages, home))
        for most in (19_999, 19_998)
    )
    assert [outcome.stage for outcome in first] == list(STAGES)
    assert "gongqing refresh --provider" in next(one.waits for one in first if one.stage.name == "topics")
    made = [outcome.stage.name for outcome in second if outcome.ran]
    assert sorted(described[-2:]) == sorted(made) == ["clean_dialogues", "clean_posts"]
    assert len(described) == len(set(described)) + 2, "in the second run nothing but what it made"
    with instance(home) as standing:
        assert [run.is_success for run in standing.get_runs()] == [True, True]


def _flip(file: Path) -> None:
    """Size and time stay as they were."""
    times, content = file.stat(), bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.drill("damage")
@pytest.mark.parametrize("damage", [_flip, Path.unlink])
def test_a_damaged_import_is_seen_although_nothing_is_stale(home, damage):
    (file,) = (home / "data" / "imported_posts" / "sample").glob("*/rows/*.parquet")
    damage(file)
    with pytest.raises(DamagedVersion, match="imported_posts/sample is damaged: a file") as caught:
        refreshed(home)
    assert f"where: {file}" in str(caught.value)
    assert "hint: import it again: gongqing import NAME PATH --as sample" in str(caught.value)
    assert not any(one.ran for one in refreshed(home, "topics").values()), "what does not read it goes on"


@pytest.mark.drill("damage")
@pytest.mark.parametrize("part", ["rows/part-00000.parquet", "manifest.json", ""])
def test_a_damaged_table_is_made_again_and_named(home, part):
    version = Store(home / "data").version("clean_dialogues")
    damaged = home / "data" / "clean_dialogues" / version.version / part
    shutil.rmtree(damaged) if not part else os.truncate(damaged, damaged.stat().st_size // 2)
    outcome = refreshed(home, "clean")["clean_dialogues"]
    [message] = outcome.damaged
    assert message.startswith("clean_dialogues is damaged: ")
    assert [one.version for one in outcome.versions] == [version.version]
    assert refreshed(home, "clean")["clean_dialogues"].damaged == ()


@pytest.mark.drill("upgrade")
def test_an_import_of_an_older_gongqing_is_used_where_it_only_lacks_what_may_be_null(home):
    store = Store(home / "data")
    posts, dialogues = (store.version(f"imported_{kind}", partition="sample") for kind in ("posts", "dialogues"))
    rewrite(store, posts, store.read("imported_posts").collect().drop("url"))
    rewrite(store, dialogues, store.read("imported_dialogues").collect().drop("lineage"), schema_version=-1)
    for table in ("clean_posts", "clean_dialogues"):
        shutil.rmtree(home / "data" / table)
    (made,) = refreshed(home, "clean_posts")["clean_posts"].versions
    assert made.rows > 0
    with pytest.raises(OlderSchema, match="imported_dialogues/sample was written by an older gongqing") as caught:
        refreshed(home, "clean_dialogues")
    assert "import it again: gongqing import" in str(caught.value)


@pytest.mark.drill("upgrade")
def test_a_derived_table_in_an_older_form_is_made_again_and_one_of_a_newer_gongqing_is_left_alone(home):
    store = Store(home / "data")
    say(store, manifest_of(store.version("clean_dialogues")), schema_version=-1)
    assert refreshed(home, "clean_dialogues")["clean_dialogues"].ran
    assert not refreshed(home, "clean_dialogues")["clean_dialogues"].ran
    key = manifest_of(store.version("clean_dialogues"))
    say(store, key, schema_version=1)
    written = store.storage.get(key)
    with pytest.raises(NewerHome, match="newer gongqing"):
        refreshed(home, "clean_dialogues")
    assert store.storage.get(key) == written
