"""SAGE's emotion by hand; the recorded dialogues of its authors stand in tests/corpus."""

import pytest
from pydantic import ValidationError

from pipelines.errors import UnreadableFile
from pipelines.evaluate.emotions import Feeling, end_of, moved, replay_emotions
from pipelines.llm.questions import InvalidReply
from pipelines.llm.replies import read_json


def test_it_moves_within_0_and_100_and_ends_at_100_and_below_10():
    assert [moved(95, 10), moved(3, -10), moved(40, -5)] == [100, 0, 35]
    assert [end_of(emotion) for emotion in (100, 99, 10, 9, 0)] == ["success", None, None, "failure", "failure"]


@pytest.mark.parametrize("reply", [
    "我给0分…不，4分",
    '我给0分…不，4分\n{"why": "嗯", "change": 4}',
    '{"why": "嗯", "change": "4"}',
    '{"why": "嗯", "change": 4.0}',
    '{"why": "嗯", "change": true}',
    '{"why": "嗯", "change": 11}',
    '{"change": 4}',
    '{"why": "0分…不", "change": 4, "score": 0}',
    "",
])  # fmt: skip
def test_a_change_is_read_from_its_field_alone(reply: str):
    with pytest.raises((InvalidReply, ValidationError)):
        read_json(reply, Feeling)


def test_a_number_in_the_grounds_is_none():
    assert read_json('{"why": "我给0分…不，4分", "change": 4}', Feeling).change == 4


def test_a_recorded_turn_without_a_change_is_refused():
    history = [{"role": "user"}, {"role": "assistant"}, {"role": "user", "planning": {"change": 10}}]
    assert replay_emotions(history) == [40, 50]
    for planning in (None, {}, *({"change": change} for change in (None, "4", 4.0, True, 11))):
        with pytest.raises(UnreadableFile, match="a turn of the seeker with the change"):
            replay_emotions([*history, {"role": "user", "planning": planning}])
