"""What is rewritten: training dialogues and labelled rounds; the rest is dropped with its reason."""

import polars as pl
import pytest
from labels_made import made_labels

from pipelines.rewrite.material import Material, material, with_scores


@pytest.fixture
def tables(sample_store) -> dict[str, pl.DataFrame]:
    names = ("coherent_dialogues", "splits", "sampled_turns", "cer_candidates")
    found = {name: sample_store.read(name).collect() for name in names}
    return found | {"cer_labels": made_labels(found["cer_candidates"], found["sampled_turns"])}


def made(tables: dict[str, pl.DataFrame]) -> Material:
    return material(*tables.values())


def reasons(found: Material, unit: str) -> set[str]:
    return {one.reason for one in found.lost if one.unit == unit}


def test_every_dialogue_and_label_is_a_script_or_lost_with_a_reason(tables):
    found = made(tables)
    for unit, table in (("dialogue", "coherent_dialogues"), ("label", "cer_labels")):
        scripts = [one.row_id for one in found.scripts if one.unit == unit]
        lost = [one.row_id for one in found.lost if one.unit == unit]
        assert len(scripts) + len(lost) == tables[table].height
        assert len({*scripts, *lost}) == tables[table].height
        assert scripts
    assert reasons(found, "dialogue") == {"not_train", "risk", "under_18"}


def test_only_training_dialogues_without_risk_of_grown_ups_are_rewritten(tables):
    split = dict(tables["splits"].select("group_id", "split").iter_rows())
    dialogues = {row["dialogue_id"]: row for row in tables["coherent_dialogues"].iter_rows(named=True)}
    scripts = made(tables).scripts
    assert scripts
    for script in scripts:
        row = dialogues[script.dialogue_id]
        assert split[script.group_id] == "train"
        assert row["group_id"] == script.group_id
        assert not row["under_18"]
        assert script.unit == "label" or not row["risk"]


@pytest.mark.parametrize(
    ("table", "column", "value", "reason"),
    [("coherent_dialogues", "under_18", True, "under_18"), ("splits", "split", "test", "not_train")],
)
def test_what_may_not_teach_is_not_rewritten(tables, table, column, value, reason):
    tables[table] = tables[table].with_columns(pl.lit(value).alias(column))
    found = made(tables)
    assert reason in reasons(found, "dialogue")
    assert not [one for one in found.scripts if one.unit == "dialogue"]


def test_a_label_whose_candidate_was_made_anew_is_dropped(tables):
    tables["cer_candidates"] = tables["cer_candidates"].slice(1)
    lost = [one for one in made(tables).lost if one.reason == "no_candidate"]
    first = tables["cer_labels"].row(0, named=True)
    assert [one.row_id for one in lost] == [f"{first['dialogue_id']}#{first['round']}/{first['candidate']}"]


@pytest.mark.parametrize(
    ("table", "changed"),
    [
        ("cer_candidates", pl.col("emotion_reasoning") + "！"),
        ("cer_candidates", pl.lit(1, pl.Int8).alias("intensity")),
        ("sampled_turns", pl.col("reference") + "！"),
    ],
    ids=["a step", "what a step says in a closed set", "the round"],
)
def test_a_label_of_what_says_something_else_by_now_is_dropped(tables, table, changed):
    """A verdict is about what people saw: the same id may stand for another reply once it was asked for anew."""
    labelled = {one.row_id for one in made(tables).scripts if one.unit == "label"}
    tables["cer_candidates"] = tables["cer_candidates"].with_columns(intensity=pl.lit(5, pl.Int8))
    tables["cer_labels"] = made_labels(tables["cer_candidates"], tables["sampled_turns"])
    tables[table] = tables[table].with_columns(changed)
    found = made(tables)
    assert {one.row_id for one in found.lost if one.reason == "candidate_changed"} == labelled
    assert {one.unit for one in found.scripts} == {"dialogue"}


def test_before_anybody_labelled_there_are_dialogues_alone(tables):
    tables["cer_labels"] = tables["cer_labels"].clear()
    assert {one.unit for one in made(tables).scripts} == {"dialogue"}


def test_personas_stand_beside_the_scores_of_their_profiles(sample_store):
    personas, profiles = (sample_store.read(name).collect() for name in ("personas", "disc_profiles"))
    found = with_scores(personas, profiles)
    assert found.height == personas.height
    row = profiles.row(3, named=True)
    [same] = found.filter(persona_id=f"{row['dialogue_id']}/{row['role']}").to_dicts()
    assert [same[trait] for trait in "DISC"] == [row[trait] for trait in "DISC"]
