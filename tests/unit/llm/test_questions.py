"""What is asked and what comes back: reasons without texts, columns by name."""

import pytest
from asking_tools import WORDS, Emotion, question
from pydantic import BaseModel, ValidationError

from pipelines.llm.questions import InvalidReply, Provenance, Reply, read, why_invalid
from schemas.reasoning import Ecot, FormatError
from schemas.table import LlmMade

SECRET = "我叫编造的名字"


def invalid(text, model=Emotion):
    with pytest.raises(ValidationError) as caught:
        model.model_validate_json(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"emotion": 3, "why": "x"}', "string_type:emotion"),
        ('{"why": "x"}', "missing:emotion"),
        (f'{{"emotion": "焦虑", "why": "x", "{SECRET}": 1}}', "extra_forbidden"),
        (SECRET, "json_invalid"),
        ("[]", "model_type"),
    ],
)
def test_the_problem_of_a_record_names_fields_of_ours_alone(text, problem):
    found = why_invalid(invalid(text), Emotion)
    assert found.problem == problem
    assert SECRET not in found.problem


def test_the_sentence_says_where_and_what_and_not_the_input():
    found = why_invalid(invalid(f'{{"emotion": ["{SECRET}"], "why": 2}}'), Emotion)
    assert "emotion: " in found.sentence
    assert "why: " in found.sentence
    assert SECRET not in found.sentence

    class Many(BaseModel):
        items: list[int]

    many = why_invalid(invalid('{"items": ["a", "b", "c", "d", "e", "f", "g"]}', Many), Many)
    assert many.sentence.count("items.") == 5


def test_a_broken_grammar_gives_kind_and_tag():
    with pytest.raises(FormatError) as caught:
        Ecot.parse("<thinking><situation>a</situation></thinking>")
    found = why_invalid(caught.value)
    assert found.problem == "missing:motivation"
    assert found.sentence == str(caught.value)


def test_a_reply_so_deep_that_reading_it_fails_is_invalid():
    def reads(text):
        raise RecursionError

    with pytest.raises(InvalidReply) as caught:
        read(question(1, parse=reads), "[" * 100_000)
    assert caught.value.problem == "too_deep"


def test_provenance_has_the_columns_of_what_models_made():
    columns = Provenance("openai", "gpt-4o", None, "emotions@1", "k").columns()
    assert list(columns) == LlmMade.column_names()


def test_no_repr_holds_what_people_wrote():
    asked = question(1)
    reply = Reply(asked, SECRET, Provenance("openai", "m", None, "p@1", "k"), reasoning=SECRET)
    assert WORDS not in repr(asked)
    assert SECRET not in repr(reply)
    assert "r1" in repr(reply)
