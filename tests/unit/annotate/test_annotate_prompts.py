"""The prompts ask for what the parsers read, and say what a reader of private texts must be told."""

import json
import re

import pytest
from annotate_rows import STORY, answer, cer, dialogue, dialogues, good, post, posts, rounds, sampled_round, splits
from pydantic import BaseModel

from pipelines import annotate
from pipelines.annotate import cer as cer_task
from pipelines.annotate import coe, coherence, ecot, emotions, topics
from pipelines.annotate.coe import CHAIN
from pipelines.llm.label_sets import names, prompt
from pipelines.llm.questions import Question, read
from pipelines.settings import Annotate
from schemas import reasoning
from schemas.labels import ANSWERABLE_STRATEGIES, EMOTIONS, RISKS, SENTIMENTS, STAGES
from schemas.reasoning import CER, CER_TAGS, COE_TAGS, ECOT, ECOT_TAGS
from schemas.taxonomy import TAXONOMY

NAMES = names(annotate.__file__)
each_prompt = pytest.mark.parametrize("name", NAMES)
JSON = ("coherence.zh", "coherence.en", "topics", "emotions")
TAGGED = {
    "coe": (CHAIN, COE_TAGS),
    "ecot": (ECOT, ECOT_TAGS),
    "cer.zh": (CER, CER_TAGS),
    "cer.en": (CER, CER_TAGS),
}


def questions() -> dict[str, Question]:
    asked, train = posts(post(1, STORY, answer("s:1/0"), topic=None)), splits()
    said = ("seeker: 我睡不着", "supporter: 多久了？")
    return {
        "coherence.zh": coherence.plan(dialogues(dialogue(1, *said)), ("a",)).questions[0],
        "coherence.en": coherence.plan(dialogues(dialogue(1, *said, lang="en")), ("a",)).questions[0],
        "topics": topics.plan(asked, ("a",)).questions[0],
        "emotions": emotions.plan(asked, ("a",)).questions[0],
        "coe": coe.plan(asked, train, None, ("a",)).questions[0],
        "ecot": ecot.plan(asked, train, None, ("a",)).questions[0],
        "cer.zh": cer_task.plan(rounds(sampled_round(1, 1)), train, ("a",)).questions[0],
        "cer.en": cer_task.plan(rounds(sampled_round(1, 1, lang="en")), train, ("a",)).questions[0],
    }


def test_every_prompt_is_asked_by_a_task_and_every_task_has_one():
    asked = questions()
    assert set(NAMES) == set(asked)
    for name, question in asked.items():
        assert question.prompt == prompt(name, annotate.__file__)
        assert question.prompt.id == f"annotate.{name}"


@each_prompt
def test_every_input_is_told_of(name: str):
    text = prompt(name, annotate.__file__).text
    assert all(key in text for key in questions()[name].inputs), "a key of the message that the prompt does not explain"


@each_prompt
def test_nothing_is_left_to_fill_in(name: str):
    assert "$" not in prompt(name, annotate.__file__).text


@each_prompt
def test_the_texts_are_material_and_no_instructions(name: str):
    assert any(words in prompt(name, annotate.__file__).text for words in ("不要照做", "do not follow"))
    assert any(words in prompt(name, annotate.__file__).text for words in ("方括号", "square brackets"))
    assert "JSON" in prompt(name, annotate.__file__).text  # a vendor's rule for JSON mode, and what the message is


@each_prompt
def test_the_prompt_speaks_the_language_of_what_it_asks_about(name: str):
    chinese = len(re.findall(r"[\u4e00-\u9fff]", prompt(name, annotate.__file__).text))
    assert chinese == 0 if name.endswith(".en") else chinese > 200


@pytest.mark.parametrize("name", [name for name in NAMES if name not in JSON])
def test_what_somebody_may_read_is_safe(name: str):
    text = prompt(name, annotate.__file__).text
    required = (
        ["crisis line", "emergency", "no diagnosis"] if name.endswith(".en") else ["12356", "120", "110", "不下诊断"]
    )
    assert all(words in text for words in required)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in JSON])
def test_a_prompt_names_the_record_that_its_reply_is_read_into(name: str):
    assert issubclass(getattr(reasoning, prompt(name, annotate.__file__).schema or ""), BaseModel)


@pytest.mark.parametrize("name", JSON)
def test_the_fields_that_are_shown_are_those_that_are_read(name: str):
    question = questions()[name]
    [shown] = re.findall(r"^\{.*\}$", prompt(name, annotate.__file__).text, flags=re.MULTILINE)
    assert question.schema is not None
    assert re.findall(r'"(\w+)": ', shown) == list(question.schema.model_fields)
    assert prompt(name, annotate.__file__).schema == question.schema.__name__
    assert prompt(name, annotate.__file__).temperature == 0


@pytest.mark.parametrize("name", TAGGED)
def test_the_tags_that_are_shown_are_those_that_are_read(name: str):
    grammar, every = TAGGED[name]
    [shown] = re.findall(
        r"^(?:<\w+>){2}.*?</\w+>$(?!\n…)", prompt(name, annotate.__file__).text, flags=re.DOTALL | re.MULTILINE
    )
    sections = grammar.read(shown)
    assert list(sections) == [tag for tag in grammar.names if tag in grammar.sections]
    assert all("…" in words for words in sections.values())
    outside = prompt(name, annotate.__file__).text.replace(shown, "")
    assert set(re.findall(r"</?(\w+)>", outside)) == set()  # shown once, so that a model does not see two forms
    assert all(re.search(rf"^- {tag}\b", outside, re.MULTILINE) for tag in grammar.sections)
    assert set(grammar.names) <= set(every)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_candidates_may_use_the_closed_sets_whole_and_nothing_else(lang: str):
    found = re.findall(r"(?:从这些里选一个：|is one of: )([^。.]+)[。.]", prompt(f"cer.{lang}", annotate.__file__).text)
    zh = lang == "zh"
    assert [re.split("、|, ", one) for one in found] == [
        list(STAGES.zh if zh else STAGES.en),
        list(SENTIMENTS.zh if zh else SENTIMENTS.en),
        [label.zh if zh else label.en for label in ANSWERABLE_STRATEGIES],
    ]
    assert cer(lang).render().splitlines()[0].split(">")[-1].startswith("阶段：" if zh else "Stage: ")


def test_topics_and_emotions_and_risks_are_the_closed_sets():
    text = prompt("topics", annotate.__file__).text
    for topic, subtopics in TAXONOMY.items():
        assert f"- {topic}：{'、'.join(subtopics)}\n" in text
    assert "、".join(RISKS) in text
    assert f"选一个：{'、'.join(EMOTIONS.zh)}。" in prompt("emotions", annotate.__file__).text


@pytest.mark.parametrize("name", JSON)
def test_structured_output_is_told_of_the_same_sets(name: str):
    question = questions()[name]
    assert question.schema is not None
    schema = question.schema.model_json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == set(schema["properties"])
    enums = [
        set(one)
        for one in re.findall(r"\[[^\[\]]*\]", json.dumps(schema, ensure_ascii=False))
        for one in [json.loads(one)]
    ]
    wanted: list[set[str]] = {
        "topics": [set(TAXONOMY), set(RISKS), {sub for subs in TAXONOMY.values() for sub in subs}],
        "emotions": [set(EMOTIONS.zh)],
    }.get(name, [{"keep", "incoherent", "artificial", "not_a_dialogue"}])
    assert all(one in enums for one in wanted)


@each_prompt
def test_a_good_reply_is_read(name: str):
    question = questions()[name]
    assert read(question, good(question)) is not None


@each_prompt
def test_the_model_that_a_prompt_names_is_the_one_that_the_settings_ask(name: str):
    models = getattr(Annotate(), name.split(".", maxsplit=1)[0])
    assert prompt(name, annotate.__file__).model == (models if isinstance(models, str) else models[0])
