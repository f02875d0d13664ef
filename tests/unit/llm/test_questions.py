"""What is asked and what comes back: reasons without texts, columns by name."""

import pytest
from asking_tools import WORDS, Emotion, question
from pydantic import BaseModel

from pipelines.llm.questions import InvalidReply, Provenance, Reply, read
from schemas.reasoning import Ecot
from schemas.table import LlmMade

SECRET = "我叫编造的名字"


def invalid(text, model=Emotion):
    with pytest.raises(InvalidReply) as caught:
        read(question(1, parse=model.model_validate_json, schema=model), text)
    return caught.value


def test_the_problem_of_a_record_names_fields_of_ours_alone():
    for text, problem in (
        ('{"emotion": 3, "why": "x"}', "string_type:emotion"),
        ('{"why": "x"}', "missing:emotion"),
        (f'{{"emotion": "焦虑", "why": "x", "{SECRET}": 1}}', "extra_forbidden"),
        (SECRET, "json_invalid"),
        ("[]", "model_type"),
    ):
        found = invalid(text)
        assert found.problem == problem
        assert SECRET not in found.problem


def test_the_sentence_says_where_and_what_and_not_the_input():
    found = invalid(f'{{"emotion": ["{SECRET}"], "why": 2}}')
    assert "emotion: " in found.sentence
    assert "why: " in found.sentence
    assert SECRET not in found.sentence

    class Many(BaseModel):
        items: list[int]

    assert invalid('{"items": ["a", "b", "c", "d", "e", "f", "g"]}', Many).sentence.count("items.") == 5


def test_a_broken_grammar_gives_kind_and_tag_and_one_too_deep_to_be_read_is_invalid():
    def too_deep(text):
        raise RecursionError

    for parse, problem in ((Ecot.parse, "missing:motivation"), (too_deep, "too_deep")):
        with pytest.raises(InvalidReply) as caught:
            read(question(1, parse=parse), "<thinking><situation>a</situation></thinking>")
        assert caught.value.problem == problem
        assert caught.value.sentence


def test_provenance_has_the_columns_of_what_models_made():
    columns = Provenance("openai", "gpt-4o", None, "emotions@1", "k").columns()
    assert list(columns) == LlmMade.column_names()


def test_no_repr_holds_what_people_wrote():
    asked = question(1)
    reply = Reply(asked, SECRET, Provenance("openai", "m", None, "p@1", "k"), reasoning=SECRET)
    assert WORDS not in repr(asked)
    assert SECRET not in repr(reply)
    assert "r1" in repr(reply)
