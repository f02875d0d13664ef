"""Without a model: what needs one waits and says so, what does not is made, up to the prompt sets."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from killing import home_with
from typer.testing import CliRunner
from unique_rows import post

from pipelines.cli import app
from pipelines.core.home import Home
from pipelines.errors import RequestError
from pipelines.flow.clients import ClientPool
from pipelines.flow.refresh import estimates, refresh, states
from pipelines.flow.runner import Outcome, Runner
from pipelines.flow.stages import MAKERS, STAGES
from pipelines.settings import Settings
from pipelines.store import Store
from pipelines.trainsets.prompt_sets import ecot_prompts
from schemas.posts import UniquePosts
from schemas.tables import TABLES
from schemas.training import Splits


@pytest.fixture(scope="module")
def made(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Outcome]]:
    """A home of the samples, refreshed without anybody to ask."""
    home = home_with(sample_home, tmp_path_factory.mktemp("waiting"), ["imported_posts", "imported_dialogues"])
    return home, refresh(home, Settings())


def store(made: tuple[Path, list[Outcome]]) -> Store:
    return Store(Home(made[0]).data)


def test_the_prompt_sets_are_made_and_have_rows(made):
    for table in ("grpo_ecot", "grpo_coe", "grpo_cer"):
        assert store(made).version(table).rows, table
    assert store(made).version("rm_triplets").dropped
    dialogues = store(made).read("coherent_dialogues").collect()
    assert dialogues.height > 20
    assert dialogues["provider"].unique().to_list() == ["structural"]  # their form alone was examined


def test_all_that_needs_a_model_waits_and_so_does_what_needs_its_tables_also_the_next_time(made):
    again = refresh(made[0], Settings())
    assert [(one.ran, one.waits) for one in again] == [(False, one.waits) for one in made[1]]
    waits = {outcome.stage.name: outcome.waits for outcome in made[1] if outcome.waits}
    asking = {stage.name for stage in STAGES if stage.asks and not stage.structural}
    followers = {
        "personas",
        "rewritten",
        "sampled_rewrites",
        "sft_coe",
        "sft_cer",
        "rm_process",
        "rm_outcome",
        "rm_unified",
    }
    assert waits.keys() == asking | followers
    assert all(said.startswith("for a model: --provider openai, or a local one") for said in waits.values())
    assert not any(Store(Home(made[0]).data).current(table) for name in asking for table in MAKERS[name].tables)


def test_the_command_names_what_waits_in_one_line_and_the_tables_with_their_states(made, monkeypatch):
    monkeypatch.setenv("GONGQING_HOME", str(made[0]))
    printed = CliRunner().invoke(app, ["refresh"]).output
    (line,) = [line for line in printed.splitlines() if "wait for a model" in line]
    assert line.startswith("topics, emotions, ecot_chains")
    found = states(store(made), Settings())
    assert found["grpo_ecot"] == "up to date"
    listed = CliRunner().invoke(app, ["tables"]).output
    assert listed.count("waits for a model") == list(found.values()).count("waits for a model") >= 15
    rows = json.loads(CliRunner().invoke(app, ["tables", "--json"]).output)
    assert "topics" not in {row["table"] for row in rows}


def test_a_table_that_rules_made_once_is_read_and_waits(made, tmp_path):
    shutil.copytree(made[0] / "data", tmp_path / "data")
    old, stage = Store(tmp_path / "data"), MAKERS["topics"]
    row = {"row_id": "sample:p001", "topic": "成长", "subtopic": None, "relevant": True, "risk": [], "why": "…"}
    row |= {"provider": "rules", "model_asked": "rules-v1", "model_served": None}
    row |= {"prompt_version": "p@1", "request_key": "k", "temperature": None}
    frame = pl.DataFrame([row], {name: TABLES["topics"].polars_schema()[name] for name in row})
    old.write("topics", frame, settings={"provider": "rules"})
    assert old.read("topics").collect()["provider"].to_list() == ["rules"]
    assert not Runner(old, Settings()).is_stale(stage)
    assert states(old, Settings())["topics"] == "waits for a model (made by rules before)"


def test_a_post_that_the_rules_doubted_is_marked_until_a_model_has_judged_it():
    doubted = post(1, "最近我和室友吵架了，晚上睡不着觉", doubts=["not_psychological"])
    rows = [doubted, post(2, "我很难过，不知道怎么办")]
    frame = UniquePosts.validate(pl.DataFrame(rows, schema=UniquePosts.polars_schema()))
    splits = pl.DataFrame([("g1", "train", "", [])], schema=Splits.polars_schema(), orient="row")
    for topics in (None, pl.DataFrame({"row_id": ["s:1"], "relevant": [True]})):
        kept, _ = ecot_prompts(frame, splits, topics=topics)
        marked = kept.select("row_id", unjudged=pl.col("extra_info").struct.field("unjudged"))
        assert dict(marked.iter_rows()) == {"s:1": topics is None, "s:2": False}


def test_an_estimate_or_a_run_says_that_no_model_is_named(made):
    with pytest.raises(RequestError, match="topics waits for a model"):
        Runner(store(made), Settings()).run(MAKERS["topics"])
    taken = {stage.name: taken for stage, taken in estimates(made[0], Settings(), ClientPool(None, Settings().llm))}
    assert taken == {stage.name: "no model is named: --provider openai" for stage in STAGES if stage.asks}
