"""Dialogues and labelled rounds as lines."""

import pytest

from pipelines.rewrite.scripts import Line, of_dialogue, of_label

TURNS = [
    {"role": "seeker", "text": "我睡不着", "strategies": ["Question"]},
    {"role": "supporter", "text": "多久了？", "strategies": ["Question", "Others"]},
    {"role": "seeker", "text": "一周", "strategies": []},
    {"role": "supporter", "text": "嗯。", "strategies": []},
]
DIALOGUE = {"dialogue_id": "s:1", "lang": "zh", "group_id": "g1", "turns": TURNS}
CANDIDATE = {
    "dialogue_id": "s:1",
    "round": 2,
    "candidate": 3,
    "lang": "zh",
    "group_id": "g1",
    "stage": "Exploration",
    "sentiment": "negative",
    "emotion": "anxiety",
    "intensity": 4,
    "strategy": "Information",
    "history_reasoning": "第一步",
    "emotion_reasoning": "第二步",
    "strategy_reasoning": "第三步",
    "response": "睡前少看手机。",
}
TURN = {
    "dialogue_id": "s:1",
    "round": 2,
    "history": [{"role": turn["role"], "text": turn["text"]} for turn in TURNS[:3]],
    "reference": "辛苦了。",
    "strategies": ["Affirmation and Reassurance"],
}


def test_a_dialogue_is_its_turns_and_only_a_supporter_has_strategies():
    made = of_dialogue(DIALOGUE)
    assert (made.unit, made.row_id, made.dialogue_id, made.lang, made.group_id) == (
        "dialogue",
        "s:1",
        "s:1",
        "zh",
        "g1",
    )
    assert made.lines == (
        Line("seeker", "我睡不着"),
        Line("supporter", "多久了？", ("Question", "Others")),
        Line("seeker", "一周"),
        Line("supporter", "嗯。"),
    )


def test_a_label_is_its_history_both_replies_and_the_three_steps():
    made = of_label(CANDIDATE, TURN)
    assert (made.unit, made.row_id, made.dialogue_id, made.lang, made.group_id) == (
        "label",
        "s:1#2/3",
        "s:1",
        "zh",
        "g1",
    )
    assert made.lines == (
        Line("seeker", "我睡不着"),
        Line("supporter", "多久了？"),
        Line("seeker", "一周"),
        Line("reference", "辛苦了。", ("Affirmation and Reassurance",)),
        Line("response", "睡前少看手机。", ("Information",)),
        Line("analysis", "第一步"),
        Line("analysis", "第二步"),
        Line("analysis", "第三步"),
    )
    assert made.closed == ("Exploration", "negative", "anxiety", 4, "Information")


def test_a_hash_tells_any_change_of_what_is_rewritten_or_was_labelled():
    told = DIALOGUE | {"turns": [*TURNS[:3], TURNS[3] | {"text": "哦。"}]}
    relabelled = DIALOGUE | {"turns": [*TURNS[:3], TURNS[3] | {"strategies": ["Others"]}]}
    swapped = DIALOGUE | {"turns": [*TURNS[:3], TURNS[3] | {"role": "seeker"}]}
    scripts = [of_dialogue(one) for one in (DIALOGUE, told, relabelled, swapped)]
    scripts += [of_label(CANDIDATE | changed, TURN) for changed in ({}, {"intensity": 5}, {"response": "睡前别看。"})]
    scripts.append(of_label(CANDIDATE, TURN | {"history": TURN["history"][1:]}))
    assert len({script.hash for script in scripts}) == len(scripts)
    assert of_dialogue(dict(DIALOGUE)).hash == scripts[0].hash


@pytest.mark.parametrize("other", [{"round": 1}, {"dialogue_id": "s:2"}])
def test_a_candidate_and_the_round_of_another_are_refused(other: dict[str, object]):
    with pytest.raises(ValueError, match=r"of s:1#2 was put beside the round"):
        of_label(CANDIDATE, TURN | other)
