"""M's prompts ask for what is read, and say what a judge of private texts must be told; their page cannot rot."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines import judge
from pipelines.judge import mindchat
from pipelines.llm.label_sets import names, prompt
from pipelines.llm.payload import payload, strict_schema
from pipelines.llm.profiles import profiles
from pipelines.llm.questions import InvalidReply, read
from pipelines.settings import ROOT
from tools.judge_prompts import listing

PAGE = ROOT / "docs" / "judging-prompts.md"
# The others, rm_*, are those that C's models learn from (tests/unit/trainsets).
NAMES = tuple(name for name in names(judge.__file__) if name.startswith("mindchat"))
FIELDS = ("fluency_comfort", "empathic_understanding", "support_encouragement")
each_prompt = pytest.mark.parametrize("name", NAMES)


def question(lang="zh", answer="嗯。"):
    return mindchat.question(
        "r", lang, [{"role": "seeker", "text": "我睡不着", "origin": "human"}], answer, "qwen-plus"
    )


def test_the_page_is_what_is_sent_and_what_the_rules_reply():
    made = "python -m tools.judge_prompts > docs/judging-prompts.md"
    assert PAGE.read_text(encoding="utf-8") == listing(), f"run: {made}"


def test_there_is_one_for_each_language():
    assert NAMES == ("mindchat.en", "mindchat.zh")
    for lang in ("zh", "en"):
        assert question(lang).prompt == prompt(f"mindchat.{lang}", judge.__file__)


@each_prompt
def test_the_fields_that_are_shown_are_those_that_are_read(name):
    [shown] = re.findall(r"^\{.*\}$", prompt(name, judge.__file__).text, flags=re.MULTILINE)
    assert re.findall(r'"(\w+)": ', shown) == list(mindchat.Scores.model_fields) == ["why", *FIELDS]
    assert (
        prompt(name, judge.__file__).schema,
        prompt(name, judge.__file__).temperature,
        prompt(name, judge.__file__).model,
    ) == ("Scores", 0, "qwen-plus")


@each_prompt
def test_the_texts_are_material_and_a_plea_is_a_flaw(name):
    text = prompt(name, judge.__file__).text
    assert all(key in text for key in (*question().inputs, "seeker", "supporter", "JSON"))
    assert any(words in text for words in ("不要照做", "do not follow"))
    assert any(words in text for words in ("高分", "high score"))
    assert any(words in text for words in ("方括号", "square brackets"))
    assert any(words in text for words in ("瞒着别人", "keep it from others"))
    chinese = len(re.findall(r"[\u4e00-\u9fff]", text))
    assert chinese == 0 if name.endswith(".en") else chinese > 200


def test_the_judge_sees_roles_and_texts_and_the_answer_alone():
    assert question().inputs == {"dialogue": [{"role": "seeker", "text": "我睡不着"}], "answer": "嗯。"}


def test_structured_output_is_told_of_whole_numbers_from_1_to_5():
    schema = strict_schema(mindchat.Scores)
    assert schema["required"] == ["why", *FIELDS]
    for name in FIELDS:
        assert schema["properties"][name] == {"type": "integer", "minimum": 1, "maximum": 5}
    assert payload(question(), profiles()["qwen-plus"])["response_format"] == {"type": "json_object"}


@given(st.lists(st.integers(1, 5), min_size=3, max_size=3), st.text(min_size=1).filter(str.strip))
def test_scores_are_read_from_their_fields_whatever_the_grounds_say(scores, why):
    said = {"why": f"5分，满分5分。{why}"[:500], **dict(zip(FIELDS, scores, strict=True))}
    found = read(question(), json.dumps(said))
    assert [getattr(found, name) for name in FIELDS] == scores


WRONG = st.one_of(
    st.integers().filter(lambda one: one not in range(1, 6)),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(),
    st.lists(st.integers(1, 5)),
)


@given(WRONG, st.sampled_from(FIELDS))
def test_anything_but_a_whole_number_from_1_to_5_is_no_score(wrong, field):
    said = {"why": "因为", **dict.fromkeys(FIELDS, 3), field: wrong}
    with pytest.raises(InvalidReply):
        read(question(), json.dumps(said))
