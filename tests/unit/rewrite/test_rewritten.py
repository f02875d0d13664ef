"""Drafts that were judged well become dialogues and labelled rounds again, with the same rows for every variant."""

from collections import Counter

import polars as pl
import pytest

from pipelines.rewrite.rewritten import rewritten_dialogues, rewritten_rounds
from pipelines.rewrite.scripts import Scripts, scripts

SOURCES = ("coherent_dialogues", "splits", "sampled_turns", "cer_candidates", "cer_labels")


@pytest.fixture
def tables(labelled_store) -> dict[str, pl.DataFrame]:
    return {name: labelled_store.read(name).collect() for name in ("rewrite_drafts", "rewrite_judgements", *SOURCES)}


def sources(tables: dict[str, pl.DataFrame]) -> Scripts:
    return scripts(*(tables[name] for name in SOURCES))[0]


def dialogues(tables: dict[str, pl.DataFrame]) -> tuple[pl.DataFrame, pl.DataFrame]:
    names = ("rewrite_drafts", "rewrite_judgements", "coherent_dialogues")
    return rewritten_dialogues(*(tables[name] for name in names), sources(tables))


def rounds(tables: dict[str, pl.DataFrame]) -> tuple[pl.DataFrame, pl.DataFrame]:
    names = ("rewrite_drafts", "rewrite_judgements", "cer_candidates", "cer_labels")
    return rewritten_rounds(*(tables[name] for name in names), sources(tables))


def judged(tables: dict[str, pl.DataFrame], unit: str, variant: str, **said: object) -> str:
    """Changes what was said of the first draft of a unit and variant that was judged well; its row id."""
    judgements = tables["rewrite_judgements"]
    well = judgements.filter(pl.col("same_meaning") & (pl.col("strategies_lost").list.len() == 0))
    row_id = well.filter(unit=unit, variant=variant)["row_id"].sort()[0]
    of_it = (pl.col("unit") == unit) & (pl.col("row_id") == row_id) & (pl.col("variant") == variant)
    tables["rewrite_judgements"] = judgements.with_columns(
        pl.when(of_it).then(pl.lit(value, dtype=judgements.schema[name])).otherwise(pl.col(name)).alias(name)
        for name, value in said.items()
    )
    return row_id


def test_all_variants_have_the_same_rows(labelled_store):
    for table, unit in (
        ("rewritten_dialogues", ["source_dialogue_id"]),
        ("rewritten_rounds", ["source_dialogue_id", "round", "candidate"]),
    ):
        rows = labelled_store.read(table).collect()
        assert Counter(rows["variant"]).keys() == {"D", "R", "P"}
        [same] = set(Counter(rows["variant"]).values())
        assert same == rows.select(unit).n_unique() > 5


def test_turns_keep_their_count_roles_and_labels_and_have_other_words(labelled_store):
    source = dict(labelled_store.read("coherent_dialogues").select("dialogue_id", "turns").collect().iter_rows())
    kept = ("role", "strategies", "source_strategies", "emotion", "feedback")
    rows = labelled_store.read("rewritten_dialogues").collect()
    assert not rows.is_empty()
    for row in rows.iter_rows(named=True):
        before, after = source[row["source_dialogue_id"]], row["turns"]
        assert [[turn[name] for name in kept] for turn in after] == [[turn[name] for name in kept] for turn in before]
        assert (after == before) == (row["variant"] == "D")
        if row["variant"] != "D":
            assert {turn["origin"] for turn in after} == {"model"}


def test_a_persona_is_named_for_p_alone_and_is_of_another_group(labelled_store):
    group = dict(labelled_store.read("personas").select("persona_id", "group_id").collect().iter_rows())
    for table in ("rewritten_dialogues", "rewritten_rounds"):
        rows = labelled_store.read(table).collect()
        assert not rows.is_empty()
        for row in rows.iter_rows(named=True):
            drawn = [row["persona_id"], row["supporter_persona_id"]]
            if row["variant"] == "P":
                assert all(group[one] != row["group_id"] for one in drawn)
            else:
                assert drawn == [None, None]


def test_a_round_carries_the_verdicts_and_the_closed_labels_of_its_source(labelled_store):
    key = ["dialogue_id", "round", "candidate"]
    of_source = ["source_dialogue_id", *key[1:]]
    rows = labelled_store.read("rewritten_rounds").collect()
    verdicts = ["step1", "step2", "step3", "preference"]
    closed = ["stage", "sentiment", "emotion", "intensity", "strategy"]
    written = ["history_reasoning", "emotion_reasoning", "strategy_reasoning", "response"]
    for table, names, some in (
        ("cer_labels", verdicts, rows),
        ("cer_candidates", closed, rows),
        ("cer_candidates", written, rows.filter(variant="D")),
    ):
        source = labelled_store.read(table).select(*key, *names).collect()
        both = some.select(*of_source, *names).join(source, left_on=of_source, right_on=key, suffix="_of_source")
        assert both.height == some.height > 0
        for name in names:
            assert both[name].equals(both[f"{name}_of_source"]), name
    assert rows.group_by(of_source).agg(pl.col("history").list.len().n_unique())["history"].unique().to_list() == [1]


@pytest.mark.parametrize(("unit", "make"), [("dialogue", dialogues), ("label", rounds)])
def test_what_is_judged_badly_once_is_lost_to_all_variants(tables, unit, make):
    before, judgements = make(tables)[0].height, tables["rewrite_judgements"]
    for said, reason, detail in (
        ({"same_meaning": False}, "judged_different", "P"),
        ({"strategies_lost": [2, 4]}, "strategies_lost", "P: 2 lines"),
    ):
        tables["rewrite_judgements"] = judgements
        row_id = judged(tables, unit, "P", **said)
        kept, dropped = make(tables)
        assert kept.height == before - 3
        assert (unit, row_id, reason, detail) in dropped.select("unit", "row_id", "reason", "detail").rows()


@pytest.mark.parametrize(("unit", "make"), [("dialogue", dialogues), ("label", rounds)])
def test_a_draft_without_a_judgement_or_with_one_of_an_older_draft_is_not_kept(tables, unit, make):
    """Drafts are made anew, and there is no budget yet to judge them: what nobody has looked at is not kept."""
    first = tables["rewrite_drafts"].filter(unit=unit, variant="P").row(0, named=True)
    lines = [line | {"text": line["text"] + "。"} for line in first["lines"]]
    of_it = (pl.col("unit") == unit) & (pl.col("row_id") == first["row_id"]) & (pl.col("variant") == "P")
    anew = pl.DataFrame([first | {"lines": lines}], schema=tables["rewrite_drafts"].schema)
    tables["rewrite_drafts"] = pl.concat([tables["rewrite_drafts"].filter(~of_it), anew])
    lost = (unit, first["row_id"], "not_judged", "P")
    assert lost in make(tables)[1].select("unit", "row_id", "reason", "detail").rows()
    tables["rewrite_judgements"] = tables["rewrite_judgements"].filter(variant="R")
    assert lost in make(tables)[1].select("unit", "row_id", "reason", "detail").rows()


def test_what_was_drafted_from_a_source_that_is_gone_is_dropped(tables):
    gone = tables["rewrite_drafts"].filter(unit="dialogue")["row_id"][0]
    tables["coherent_dialogues"] = tables["coherent_dialogues"].filter(pl.col("dialogue_id") != gone)
    kept, dropped = dialogues(tables)
    assert gone not in set(kept["source_dialogue_id"])
    assert ("dialogue", gone, "source_changed") in dropped.select("unit", "row_id", "reason").rows()
    label = tables["rewrite_drafts"].filter(unit="label")["row_id"][0]
    label_id = pl.format("{}#{}/{}", "dialogue_id", "round", "candidate")
    tables["cer_labels"] = tables["cer_labels"].filter(label_id != label)
    _, dropped = rounds(tables)
    assert ("label", label, "source_changed") in dropped.select("unit", "row_id", "reason").rows()
