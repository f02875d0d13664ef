"""What is rewritten: training dialogues and labelled rounds as lines; the rest is dropped with its reason."""

import polars as pl
import pytest
from labels_made import made_labels

from pipelines.rewrite.rewriting import with_scores
from pipelines.rewrite.scripts import Line, Script, of_dialogue, of_label, scripts

TURNS = [
    {"role": "seeker", "text": "我睡不着", "strategies": ["Question"]},
    {"role": "supporter", "text": "多久了？", "strategies": ["Question", "Others"]},
    {"role": "seeker", "text": "一周", "strategies": []},
    {"role": "supporter", "text": "嗯。", "strategies": []},
]
IDS = {"dialogue_id": "s:1", "lang": "zh", "group_id": "g1"}
DIALOGUE = IDS | {"turns": TURNS}
CLOSED = {"stage": "Exploration", "sentiment": "negative", "emotion": "anxiety", "intensity": 4, "strategy": "Others"}
STEPS = {"history_reasoning": "第一步", "emotion_reasoning": "第二步", "strategy_reasoning": "第三步"}
CANDIDATE = IDS | {"round": 2, "candidate": 3, "response": "睡前少看手机。"} | CLOSED | STEPS
HISTORY = [{"role": turn["role"], "text": turn["text"]} for turn in TURNS[:3]]
TURN = {"dialogue_id": "s:1", "round": 2, "history": HISTORY, "reference": "辛苦了。", "strategies": ["Question"]}


def ids(script: Script) -> tuple[str, ...]:
    return script.unit, script.row_id, script.dialogue_id, script.lang, script.group_id


def test_a_dialogue_is_its_turns_and_only_a_supporter_has_strategies():
    script = of_dialogue(DIALOGUE)
    assert ids(script) == ("dialogue", "s:1", "s:1", "zh", "g1")
    assert script.lines == (
        Line("seeker", "我睡不着"),
        Line("supporter", "多久了？", ("Question", "Others")),
        Line("seeker", "一周"),
        Line("supporter", "嗯。"),
    )


def test_a_label_is_its_history_both_replies_and_the_three_steps():
    script = of_label(CANDIDATE, TURN)
    assert ids(script) == ("label", "s:1#2/3", "s:1", "zh", "g1")
    assert script.lines == (
        Line("seeker", "我睡不着"),
        Line("supporter", "多久了？"),
        Line("seeker", "一周"),
        Line("reference", "辛苦了。", ("Question",)),
        Line("response", "睡前少看手机。", ("Others",)),
        *(Line("analysis", step) for step in ("第一步", "第二步", "第三步")),
    )
    assert script.closed == tuple(CLOSED.values())


def test_a_hash_tells_any_change_of_what_is_rewritten_or_was_labelled():
    last = [TURNS[3] | change for change in ({}, {"text": "哦。"}, {"strategies": ["Others"]}, {"role": "seeker"})]
    made = [of_dialogue(DIALOGUE | {"turns": [*TURNS[:3], turn]}) for turn in last]
    made += [of_label(CANDIDATE | changed, TURN) for changed in ({}, {"intensity": 5}, {"response": "睡前别看。"})]
    made.append(of_label(CANDIDATE, TURN | {"history": TURN["history"][1:]}))
    assert len({script.hash for script in made}) == len(made)
    assert of_dialogue(dict(DIALOGUE)).hash == made[0].hash


def test_a_candidate_and_the_round_of_another_are_refused():
    for other in ({"round": 1}, {"dialogue_id": "s:2"}):
        with pytest.raises(ValueError, match=r"of s:1#2 was put beside the round"):
            of_label(CANDIDATE, TURN | other)


@pytest.fixture
def tables(sample_store) -> dict[str, pl.DataFrame]:
    names = ("coherent_dialogues", "splits", "sampled_turns", "cer_candidates")
    frames = {name: sample_store.read(name).collect() for name in names}
    return frames | {"cer_labels": made_labels(frames["cer_candidates"], frames["sampled_turns"])}


def test_every_dialogue_and_label_is_a_script_or_lost_and_only_what_may_teach_is_one(tables):
    made, lost = scripts(*tables.values())
    for unit, table in (("dialogue", "coherent_dialogues"), ("label", "cer_labels")):
        ids = [row_id for of, row_id in made if of == unit]
        assert ids
        assert len({*ids, *(one.row_id for one in lost if one.unit == unit)}) == tables[table].height
    assert len(made) + len(lost) == tables["coherent_dialogues"].height + tables["cer_labels"].height
    assert {one.reason for one in lost if one.unit == "dialogue"} == {"not_train", "risk", "under_18"}
    split = dict(tables["splits"].select("group_id", "split").iter_rows())
    dialogues = {row["dialogue_id"]: row for row in tables["coherent_dialogues"].iter_rows(named=True)}
    for (unit, _), script in made.items():
        row = dialogues[script.dialogue_id]
        assert split[script.group_id] == "train"
        assert row["group_id"] == script.group_id
        assert not row["under_18"]
        assert unit == "label" or not row["risk"]


def test_held_out_rows_are_there_where_they_are_asked_for(tables):
    """`trainsets.labelled` asks for them; whatever rewrites does not."""
    teaching, lost = scripts(*tables.values())
    every, left = scripts(*tables.values(), held_out=True)
    not_train = {(one.unit, one.row_id) for one in lost if one.reason == "not_train"}
    assert {unit for unit, _ in not_train} == {"dialogue", "label"}
    assert teaching.keys() <= every.keys()
    assert every.keys() - teaching.keys() <= not_train
    assert "not_train" not in {one.reason for one in left}


def test_a_label_whose_candidate_is_gone_is_dropped(tables):
    tables["cer_candidates"] = tables["cer_candidates"].slice(1)
    lost = [one for one in scripts(*tables.values())[1] if one.reason == "no_candidate"]
    first = tables["cer_labels"].row(0, named=True)
    assert [one.row_id for one in lost] == [f"{first['dialogue_id']}#{first['round']}/{first['candidate']}"]


def test_a_label_of_another_text_is_dropped(tables):
    """A verdict is about what people saw: the same id may stand for another reply once it was asked for again."""
    labelled = {row_id for unit, row_id in scripts(*tables.values())[0] if unit == "label"}
    tables["cer_candidates"] = tables["cer_candidates"].with_columns(intensity=pl.lit(5, pl.Int8))
    tables["cer_labels"] = made_labels(tables["cer_candidates"], tables["sampled_turns"])
    for table, changed in (
        ("cer_candidates", pl.col("emotion_reasoning") + "！"),
        ("cer_candidates", pl.lit(1, pl.Int8).alias("intensity")),
        ("sampled_turns", pl.col("reference") + "！"),
    ):
        made, lost = scripts(*(tables | {table: tables[table].with_columns(changed)}).values())
        assert {one.row_id for one in lost if one.reason == "candidate_changed"} == labelled
        assert {unit for unit, _ in made} == {"dialogue"}


def test_personas_have_the_scores_of_their_profiles(sample_store):
    personas, profiles = (sample_store.read(name).collect() for name in ("personas", "disc_profiles"))
    scored = with_scores(personas, profiles)
    assert scored.height == personas.height
    row = profiles.row(3, named=True)
    [same] = scored.filter(persona_id=f"{row['dialogue_id']}/{row['role']}").to_dicts()
    assert [same[trait] for trait in "DISC"] == [row[trait] for trait in "DISC"]
