"""Drafts that were judged well become dialogues and labelled rounds again, with the same rows for every variant."""

from collections import Counter

import polars as pl
import pytest

from pipelines.rewrite.rewritten import rewritten_dialogues, rewritten_rounds
from pipelines.rewrite.scripts import Scripts, scripts
from pipelines.store import Store

SOURCES = ("coherent_dialogues", "splits", "sampled_turns", "cer_candidates", "cer_labels")


@pytest.fixture
def store(labelled_store) -> Store:
    return labelled_store


@pytest.fixture
def tables(store) -> dict[str, pl.DataFrame]:
    return {name: store.read(name).collect() for name in ("rewrite_drafts", "rewrite_judgements", *SOURCES)}


def sources(tables: dict[str, pl.DataFrame]) -> Scripts:
    return scripts(*(tables[name] for name in SOURCES))[0]


def dialogues(tables: dict[str, pl.DataFrame]) -> tuple[pl.DataFrame, pl.DataFrame]:
    names = ("rewrite_drafts", "rewrite_judgements", "coherent_dialogues")
    return rewritten_dialogues(*(tables[name] for name in names), sources(tables))


def rounds(tables: dict[str, pl.DataFrame]) -> tuple[pl.DataFrame, pl.DataFrame]:
    names = ("rewrite_drafts", "rewrite_judgements", "cer_candidates", "cer_labels")
    return rewritten_rounds(*(tables[name] for name in names), sources(tables))


def judged(tables: dict[str, pl.DataFrame], unit: str, variant: str, **said: object) -> str:
    """Changes what was said of the first draft of a unit and variant; its row id."""
    judgements = tables["rewrite_judgements"]
    row_id = judgements.filter(unit=unit, variant=variant)["row_id"].sort()[0]
    of_it = (pl.col("unit") == unit) & (pl.col("row_id") == row_id) & (pl.col("variant") == variant)
    tables["rewrite_judgements"] = judgements.with_columns(
        pl.when(of_it).then(pl.lit(value, dtype=judgements.schema[name])).otherwise(pl.col(name)).alias(name)
        for name, value in said.items()
    )
    return row_id


def test_all_variants_have_the_same_rows(store):
    for table, unit in (
        ("rewritten_dialogues", ["source_dialogue_id"]),
        ("rewritten_rounds", ["source_dialogue_id", "round", "candidate"]),
    ):
        rows = store.read(table).collect()
        assert Counter(rows["variant"]).keys() == {"D", "R", "P"}
        [same] = set(Counter(rows["variant"]).values())
        assert same == rows.select(unit).n_unique() > 5


def test_turns_keep_their_count_roles_and_labels_and_have_other_words(store):
    source = {row["dialogue_id"]: row["turns"] for row in store.read("coherent_dialogues").collect().to_dicts()}
    kept = ("role", "strategies", "source_strategies", "emotion", "feedback")
    rows = store.read("rewritten_dialogues").collect()
    assert not rows.is_empty()
    for row in rows.iter_rows(named=True):
        before, after = source[row["source_dialogue_id"]], row["turns"]
        assert [[turn[name] for name in kept] for turn in after] == [[turn[name] for name in kept] for turn in before]
        assert (after == before) == (row["variant"] == "D")
        if row["variant"] != "D":
            assert {turn["origin"] for turn in after} == {"model"}


def test_a_persona_is_named_for_p_alone_and_is_of_another_group(store):
    group = dict(store.read("personas").select("persona_id", "group_id").collect().iter_rows())
    for table in ("rewritten_dialogues", "rewritten_rounds"):
        rows = store.read(table).collect()
        assert not rows.is_empty()
        for row in rows.iter_rows(named=True):
            drawn = [row["persona_id"], row["supporter_persona_id"]]
            if row["variant"] == "P":
                assert all(group[one] != row["group_id"] for one in drawn)
            else:
                assert drawn == [None, None]


def test_a_round_carries_the_verdicts_and_the_closed_labels_of_its_source(store):
    labels = {(r["dialogue_id"], r["round"], r["candidate"]): r for r in store.read("cer_labels").collect().to_dicts()}
    steps = {
        (r["dialogue_id"], r["round"], r["candidate"]): r for r in store.read("cer_candidates").collect().to_dicts()
    }
    rows = store.read("rewritten_rounds").collect().to_dicts()
    for row in rows:
        key = row["source_dialogue_id"], row["round"], row["candidate"]
        for name in ("step1", "step2", "step3", "preference"):
            assert row[name] == labels[key][name]
        for name in ("stage", "sentiment", "emotion", "intensity", "strategy"):
            assert row[name] == steps[key][name]
        if row["variant"] == "D":
            for name in ("history_reasoning", "emotion_reasoning", "strategy_reasoning", "response"):
                assert row[name] == steps[key][name]
    history = {
        row["variant"]: len(row["history"])
        for row in rows
        if row["source_dialogue_id"] == rows[0]["source_dialogue_id"]
    }
    assert len(set(history.values())) == 1


@pytest.mark.parametrize(
    ("said", "reason", "detail"),
    [
        ({"same_meaning": False}, "judged_different", "P"),
        ({"strategies_lost": [2, 4]}, "strategies_lost", "P: 2 lines"),
    ],
)
@pytest.mark.parametrize(("unit", "make"), [("dialogue", dialogues), ("label", rounds)])
def test_what_is_judged_badly_once_is_lost_to_all_variants(tables, unit, make, said, reason, detail):
    before = make(tables)[0].height
    row_id = judged(tables, unit, "P", **said)
    kept, dropped = make(tables)
    assert kept.height == before - 3
    assert (unit, row_id, reason, detail) in dropped.select("unit", "row_id", "reason", "detail").rows()


def test_a_draft_without_a_judgement_is_not_kept(tables):
    row_id = tables["rewrite_judgements"].filter(unit="dialogue")["row_id"][0]
    tables["rewrite_judgements"] = tables["rewrite_judgements"].filter(pl.col("row_id") != row_id)
    _, dropped = dialogues(tables)
    assert ("dialogue", row_id, "not_judged") in dropped.select("unit", "row_id", "reason").rows()


@pytest.mark.parametrize(("unit", "make"), [("dialogue", dialogues), ("label", rounds)])
def test_a_judgement_of_an_older_draft_judges_nothing(tables, unit, make):
    """Drafts are made anew, and there is no budget yet to judge them: what nobody has looked at is not kept."""
    first = tables["rewrite_drafts"].filter(unit=unit, variant="P").row(0, named=True)
    lines = [line | {"text": line["text"] + "。"} for line in first["lines"]]
    of_it = (pl.col("unit") == unit) & (pl.col("row_id") == first["row_id"]) & (pl.col("variant") == "P")
    anew = pl.DataFrame([first | {"lines": lines}], schema=tables["rewrite_drafts"].schema)
    tables["rewrite_drafts"] = pl.concat([tables["rewrite_drafts"].filter(~of_it), anew])
    _, dropped = make(tables)
    assert (unit, first["row_id"], "not_judged", "P") in dropped.select("unit", "row_id", "reason", "detail").rows()


def test_what_was_drafted_from_a_source_that_is_gone_is_dropped(tables):
    gone = tables["rewrite_drafts"].filter(unit="dialogue")["row_id"][0]
    tables["coherent_dialogues"] = tables["coherent_dialogues"].filter(pl.col("dialogue_id") != gone)
    kept, dropped = dialogues(tables)
    assert gone not in set(kept["source_dialogue_id"])
    assert ("dialogue", gone, "source_changed") in dropped.select("unit", "row_id", "reason").rows()
    label = tables["rewrite_drafts"].filter(unit="label")["row_id"][0]
    tables["cer_labels"] = tables["cer_labels"].filter(
        pl.format("{}#{}/{}", "dialogue_id", "round", "candidate") != label
    )
    _, dropped = rounds(tables)
    assert ("label", label, "source_changed") in dropped.select("unit", "row_id", "reason").rows()
