"""Rows that rest on what no model made, however far back."""

import polars as pl
import pytest
from planted_home import planted_home
from released_rows import few_rows
from unique_rows import post

from pipelines.release.assemble import CHECKS, findings
from pipelines.release.checks.no_model import ancestors, not_from_a_model, unjudged
from pipelines.release.checks.released import Released
from pipelines.settings import Settings
from pipelines.store import Store
from schemas.tables import TABLES


@pytest.fixture
def released(sample_home, tmp_path) -> Released:
    """The sample home, as if people had answered everything."""
    home = planted_home(sample_home, tmp_path / "home", provider="written")
    store = Store(home / "data")
    return Released(home, store, {one.name: one for table in TABLES for one in store.current(table)}, Settings())


def test_every_round_rests_on_the_filter_and_few_posts_on_topics(released, sample_store: Store):
    (found,) = not_from_a_model(released)
    rounds = sample_store.read("grpo_cer").collect()
    judged = set(sample_store.read("topics").collect()["row_id"])
    posts = [set(sample_store.read(table).collect()["row_id"]) & judged for table in ("grpo_ecot", "grpo_coe")]
    learnt = [sample_store.version(table).rows for table in ("sft_coe", "rm_triplets")]  # all of it
    assert found.count == rounds.height + sum(map(len, posts)) + sum(learnt)
    assert all(table in found.what for table in ("coe_chains", "coherent_dialogues", "emotions", "topics"))


def test_a_row_that_names_who_is_no_model_is_found_whatever_the_tables_before_it_say():
    """A triplet's negative is another question's answer: no other row of such a provider is of the question."""
    row = {"split": "train", "made_from": "s:1", "variant": "none", "kind": "other_answer"}
    providers = {"s:1/other_answer": ["openai"], "s:1/mismatched_emotion": ["openai", "written"]}
    rows = [row | {"row_id": row_id, "providers": said} for row_id, said in providers.items()]
    triplets = pl.DataFrame(rows, schema=TABLES["rm_triplets"].polars_schema())
    told = few_rows(post(1, "我最近睡不好。"), split_of={"g1": "train"}, rm_triplets=triplets)
    (found,) = not_from_a_model(told)
    assert (found.count, found.examples) == (1, ["s:1/mismatched_emotion"])
    assert "(rm_triplets): rm_triplets 1" in found.what


DOUBTED = post(1, "最近我和室友吵架了，晚上睡不着觉", doubts=["not_psychological"])
CLEAR = post(2, "我很难过，不知道怎么办才好")


def test_prompts_that_no_model_has_judged_are_counted_and_strict_refuses_them(monkeypatch):
    rows = few_rows(DOUBTED, CLEAR, split_of={"g1": "train"})
    (found,) = unjudged(rows)
    assert (found.count, found.severity, found.examples) == (1, "warn", ["s:1"])
    assert not list(unjudged(few_rows(CLEAR, split_of={"g1": "train"})))
    assert unjudged in CHECKS
    monkeypatch.setattr("pipelines.release.assemble.CHECKS", (unjudged,))
    assert [one.severity for strict in (False, True) for one in findings(rows, strict=strict)] == ["warn", "refuse"]


def test_a_table_comes_from_its_parents_and_theirs(released):
    assert ancestors(released, "grpo_cer") >= {"sampled_turns", "splits", "coherent_dialogues", "unique_dialogues"}
    assert ancestors(released, "grpo_ecot") >= {"topics", "unique_posts", "clean_posts"}
    assert "coherent_dialogues" not in ancestors(released, "grpo_ecot")
    assert ancestors(released, "imported_posts") == set()


def test_a_rewriting_rests_on_what_it_was_made_by_and_the_round_beside_it_does_not(sample_home, tmp_path):
    """Models have judged all dialogues; nobody's personas are by a model."""
    home = planted_home(sample_home, tmp_path / "home", {"disc_profiles": lambda rows: say(rows, "written")})
    store = Store(home / "data")
    released = Released(home, store, {one.name: one for table in TABLES for one in store.current(table)}, Settings())
    (found,) = not_from_a_model(released)
    rewritten = set(store.read("grpo_cer").filter(pl.col("variant") == "P").collect()["row_id"])
    assert set(found.examples) == rewritten > set()
    assert "disc_profiles" in found.what


def say(rows: list[dict], provider: str) -> None:
    for row in rows:
        row["provider"] = provider
