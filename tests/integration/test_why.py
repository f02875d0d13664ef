"""The life of a row."""

import asyncio
from decimal import Decimal
from itertools import product

import polars as pl
from erase_home import make_home

from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Answer, Call
from pipelines.llm.money import Usage
from pipelines.operations.lineage import why
from schemas.ids import candidate_id, round_id


def _life(store, row_id):
    return {(event.table, event.row_id, event.what, event.reason) for event in why(store, row_id)}


def test_a_round_that_was_not_drawn(real_store):
    row_id = real_store.read_dropped("sampled_turns").collect()["row_id"][0]
    life = _life(real_store, row_id)
    assert ("imported_dialogues", row_id.split("#")[0], "kept", None) in life
    assert ("sampled_turns", row_id, "dropped", "not_sampled") in life


def test_tables_that_are_about_no_row_are_passed_over(tmp_path):
    store = make_home(tmp_path)
    life = _life(store, "s:b")
    assert ("clean_posts", "s:b", "kept", None) in life
    assert {table for table, *_ in life}.isdisjoint({"judge_tests", "persona_fits"})


def test_a_post_has_its_dates_and_its_text_as_it_came_and_as_it_was_cleaned(sample_store):
    cleaned = sample_store.read("clean_posts").filter(pl.col("pii").list.len() > 0).collect().row(0, named=True)
    raw = sample_store.read("imported_posts", partition="sample").filter(post_id=cleaned["post_id"]).collect()
    events = {one.table: one for one in why(sample_store, cleaned["post_id"]) if one.row_id == cleaned["post_id"]}
    first, second = events["imported_posts"], events["clean_posts"]
    assert first.text == "\n".join(filter(None, raw.select("title", "description").row(0)))
    assert second.text == cleaned["text"]
    assert (first.posted, first.crawled) == raw.select("posted_at", "fetched_at").row(0)
    assert first.made == sample_store.version("imported_posts", partition="sample").manifest.runs[-1].at


def test_what_a_model_made_of_a_row_comes_with_the_calls_and_what_each_cost(sample_store, tmp_path):
    row = sample_store.read("topics").collect().row(0, named=True)
    asked = Call(row["request_key"], "topics", "qwen-plus", "qwen-plus", b"{}", currency="CNY")
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        attempt = asyncio.run(ledger.begin(asked, reserve=1000, budget=None))
        asyncio.run(ledger.answered(attempt, Answer(b"{}", "qwen-plus-2025", "stop", Usage(100, 0, 20), 700)))
        events = {one.table: one for one in why(sample_store, row["row_id"], ledger) if one.row_id == row["row_id"]}
    [call] = events["topics"].calls
    assert (call.model_served, call.tokens_in, call.cost) == ("qwen-plus-2025", 100, Decimal("0.0000007"))
    assert events["topics"].text.startswith(f"topic: {row['topic']}\n")
    assert events["topics"].text.endswith(f"\nwhy: {row['why']}")
    assert not any(one.calls for one in events.values() if one.table != "topics")


def test_an_answer_that_moved_to_the_survivor(sample_store):
    """p083 repeats p012: its answers live on there."""
    moved = next(
        answer["answer_id"]
        for row in sample_store.read("unique_posts").collect().iter_rows(named=True)
        for answer in row["answers"]
        if not answer["answer_id"].startswith(row["post_id"] + "/")
    )
    assert ("unique_posts", moved, "kept", None) in _life(sample_store, moved)
    details = [event.detail or "" for event in why(sample_store, moved) if event.table == "unique_posts"]
    assert any(detail.startswith("of sample:") for detail in details)


def test_a_candidate_has_the_id_that_its_drops_bear_and_comes_with_its_round(sample_store):
    row = sample_store.read("cer_candidates").collect().row(0, named=True)
    candidate = candidate_id(row["dialogue_id"], row["round"], row["candidate"])
    of_round = round_id(row["dialogue_id"], row["round"])
    for row_id in (candidate, of_round):
        life = _life(sample_store, row_id)
        assert ("cer_candidates", candidate, "kept", None) in life
        assert ("sampled_turns", of_round, "kept", None) in life
        assert ("imported_dialogues", row["dialogue_id"], "kept", None) in life


def test_a_dialogue_with_its_speakers_and_what_was_rewritten_from_it(sample_store):
    source = sample_store.read("rewritten_dialogues").collect()["source_dialogue_id"][0]
    life = _life(sample_store, source)
    for table, role in product(("disc_profiles", "personas"), ("seeker", "supporter")):
        assert (table, f"{source}/{role}", "kept", None) in life
    assert ("rewritten_dialogues", f"{source}~P", "kept", None) in life
    asked = {row for table, row, what, _ in life if (table, what) == ("sampled_rewrites", "kept")}
    assert asked
    assert {("grpo_cer", row, "kept", None) for row in asked} <= life
    assert ("imported_dialogues", source, "kept", None) in _life(sample_store, f"{source}~P")
