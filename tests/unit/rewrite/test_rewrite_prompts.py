"""The prompts ask for what the parsers read, and say what a writer and a judge of private texts must be told."""

import json
import re
from functools import cache
from typing import Any

import polars as pl
import pytest
from rewrite_rows import good_rewrites, good_scripts, judgement, personas, reply

from pipelines import rewrite
from pipelines.llm.label_sets import names, prompt
from pipelines.llm.questions import Question, read
from pipelines.rewrite import judging, rewriting
from pipelines.settings import Rewrite
from schemas.labels import STRATEGIES
from schemas.personas import RewriteDrafts

GOOD = good_scripts()
OF_LANG = {"zh": "label: grandmother", "en": "label: new town"}
NAMES = tuple(f"{kind}.{lang}" for kind in ("rewrite", "rewrite_persona", "judge") for lang in ("zh", "en"))
WRITING = [name for name in NAMES if not name.startswith("judge")]
each_prompt = pytest.mark.parametrize("name", NAMES)


@cache
def question(name: str) -> Question[Any]:
    kind, lang = name.split(".")
    script = GOOD[OF_LANG[lang]]
    variant = "P" if kind == "rewrite_persona" else "R"
    made = rewriting.plan([script], [], personas(script.dialogue_id, lang=lang), (variant,), ("a",), seed=1)
    if kind != "judge":
        return made.questions[0]
    lines = [{"who": line.who, "text": line.text} for line in script.lines]
    row = dict.fromkeys(RewriteDrafts.column_names()) | {"unit": script.unit, "row_id": script.row_id, "variant": "R"}
    drafts = pl.DataFrame([row | {"source": script.hash, "lines": lines}], schema=RewriteDrafts.polars_schema())
    return judging.plan(drafts, {(script.unit, script.row_id): script}, ("a",)).questions[0]


def test_each_is_there_and_is_asked():
    assert set(NAMES) <= set(names(rewrite.__file__))
    assert {name for name in names(rewrite.__file__) if name not in NAMES} <= {"disc.zh", "disc.en"}
    for name in NAMES:
        assert question(name).prompt == prompt(name, rewrite.__file__)
        assert prompt(name, rewrite.__file__).id == f"rewrite.{name}"
        assert prompt(name, rewrite.__file__).language == name[-2:]


@each_prompt
def test_every_input_is_told_of(name: str):
    asked = question(name).inputs
    keys = {*asked, *asked["lines"][0], *asked.get("personas", {}), *asked.get("personas", {}).get("seeker", {})}
    assert all(re.search(rf"(?<![a-z]){key}(?![a-z])", prompt(name, rewrite.__file__).text) for key in keys)


@each_prompt
def test_everyone_who_may_speak_and_every_strategy_is_told_of(name: str):
    for word in ("seeker", "supporter", "reference", "response", "analysis", *STRATEGIES.en):
        assert word in prompt(name, rewrite.__file__).text, word


@each_prompt
def test_nothing_is_left_to_fill_in(name: str):
    assert "$" not in prompt(name, rewrite.__file__).text


@each_prompt
def test_the_texts_are_material_and_no_instructions(name: str):
    assert any(words in prompt(name, rewrite.__file__).text for words in ("不要照做", "do not follow"))
    assert any(words in prompt(name, rewrite.__file__).text for words in ("方括号", "square brackets"))
    assert "JSON" in prompt(name, rewrite.__file__).text


@each_prompt
def test_the_prompt_speaks_the_language_of_what_it_asks_about(name: str):
    chinese = len(re.findall(r"[\u4e00-\u9fff]", prompt(name, rewrite.__file__).text))
    assert chinese == 0 if name.endswith(".en") else chinese > 500


@each_prompt
def test_the_fields_that_are_shown_are_those_that_are_read(name: str):
    [shown] = re.findall(r"^\{.*\}$", prompt(name, rewrite.__file__).text, flags=re.MULTILINE)
    fields = json.loads(shown)
    schema = question(name).schema
    assert schema is not None
    assert list(fields) == list(schema.model_fields)
    if name in WRITING:
        assert all(list(line) == list(rewriting.RewrittenLine.model_fields) for line in fields["lines"])
        assert [line["n"] for line in fields["lines"]] == [1, 2]
    assert prompt(name, rewrite.__file__).schema == schema.__name__


@each_prompt
def test_a_good_reply_is_read(name: str):
    lang = name[-2:]
    script = GOOD[OF_LANG[lang]]
    why = "意思一样" if lang == "zh" else "it says the same"
    said = reply(script, good_rewrites()[OF_LANG[lang]]["R"]) if name in WRITING else judgement(why=why)
    assert read(question(name), said) is not None


@each_prompt
def test_a_writer_is_drawn_and_a_judge_is_not(name: str):
    assert prompt(name, rewrite.__file__).temperature == (0.7 if name in WRITING else 0)
    assert prompt(name, rewrite.__file__).model == (Rewrite().writing if name in WRITING else Rewrite().judging)


@pytest.mark.parametrize("name", WRITING)
def test_what_must_stay_and_what_may_not_appear_is_said(name: str):
    words = (
        ("行数", "数字", "亲属", "诊断", "药物", "列条目", "代码框", "道歉", "模型", "不纠正", "更贴心")
        if name.endswith("zh")
        else ("number of lines", "numbers", "relatives", "diagnoses", "drugs", "lists", "fences", "apologies", "model",
              "do not mend", "warmer")
    )  # fmt: skip
    assert all(word in prompt(name, rewrite.__file__).text for word in words)


def test_both_writers_are_told_the_same_of_what_must_stay():
    for lang, start in (("zh", "必须保持不变的"), ("en", "What must stay")):
        plain, personal = (prompt(f"{kind}.{lang}", rewrite.__file__).text for kind in ("rewrite", "rewrite_persona"))
        rules = plain[plain.index(start) :].split("\n\n", 1)[1].split("\n\n", 1)[0].splitlines()
        assert len(rules) == 6
        assert all(rule in personal for rule in rules), "R and P differ in more than the persona"


def test_only_the_prompt_of_personas_speaks_of_them():
    for lang in ("zh", "en"):
        assert "personas" in prompt(f"rewrite_persona.{lang}", rewrite.__file__).text
        assert "personas" not in prompt(f"rewrite.{lang}", rewrite.__file__).text
        assert all(
            re.search(rf"^- {trait} ?[（(]", prompt(f"rewrite_persona.{lang}", rewrite.__file__).text, re.MULTILINE)
            for trait in "DISC"
        )
