"""Every prompt asks for what its parser reads, and says what a reader of private texts must know."""

import json
import re
from functools import cache
from typing import Any

import pytest
from annotate_rows import STORY, answer, cer, dialogue, dialogues, good, post, posts, rounds, sampled_round, splits
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from rewrite_rows import draft, drafts, good_rewrites, good_scripts, judgement, personas, reply

from pipelines import annotate, judge, rewrite
from pipelines.annotate import cer as cer_task
from pipelines.annotate import coe, coherence, ecot, emotions, topics
from pipelines.annotate.coe import CHAIN
from pipelines.judge.judging import Scores, scoring_question
from pipelines.llm.payload import payload, strict_schema
from pipelines.llm.profiles import profiles as model_profiles
from pipelines.llm.prompts import Prompt, names, prompt
from pipelines.llm.questions import InvalidReply, Question, read
from pipelines.rewrite import judging, profiles, rewriting
from pipelines.settings import Annotate, Rewards, Rewrite, Settings
from schemas import reasoning
from schemas.labels import EMOTIONS, RISKS, SENTIMENTS, STAGES, STRATEGIES
from schemas.reasoning import CER, CER_TAGS, COE_TAGS, ECOT, ECOT_TAGS, Grammar
from schemas.taxonomy import TAXONOMY

MODULES = {"annotate": annotate.__file__, "rewrite": rewrite.__file__, "judging": judge.__file__}
TALK = ("seeker: 我睡不着，很难过，想说说话", "supporter: 多久了？你愿意先说一说吗")
SCORES = ("fluency_comfort", "empathic_understanding", "support_encouragement")
SCRIPTS = {lang: good_scripts()[name] for lang, name in (("zh", "label: grandmother"), ("en", "label: new town"))}
MANNER = {"zh": "说话干脆，想什么就说什么。对人很有耐心。", "en": "Comes to the point and is quick. Waits for others."}
GROUNDS = {"zh": "意思一样", "en": "it says the same"}
TAGGED: dict[str, tuple[Grammar, tuple[str, ...]]] = {
    "annotate.coe": (CHAIN, COE_TAGS),
    "annotate.ecot": (ECOT, ECOT_TAGS),
    "annotate.cer.zh": (CER, CER_TAGS),
    "annotate.cer.en": (CER, CER_TAGS),
}


def scored(lang: str = "zh") -> Question[Any]:
    turns = [{"role": "seeker", "text": "我睡不着", "origin": "human"}]
    return scoring_question("r", lang, turns, "嗯。", Rewards().mindchat)  # type: ignore[arg-type]


@cache
def questions() -> dict[str, tuple[Question[Any], str]]:
    """By prompt: a question that is asked with it, and a reply that it accepts."""
    asked, train, one = posts(post(1, STORY, answer("s:1/0"), topic=None)), splits(), ("a",)
    found = {
        "annotate.topics": topics.plan(asked, one).questions[0],
        "annotate.emotions": emotions.plan(asked, one).questions[0],
        "annotate.coe": coe.plan(asked, train, None, one).questions[0],
        "annotate.ecot": ecot.plan(asked, train, None, one).questions[0],
    }
    for lang in ("zh", "en"):
        talk = dialogues(dialogue(1, *TALK, lang=lang))
        found[f"annotate.coherence.{lang}"] = coherence.plan(talk, one).questions[0]
        turns = rounds(sampled_round(1, 1, lang=lang))
        found[f"annotate.cer.{lang}"] = cer_task.plan(turns, train, one, Settings()).questions[0]
    pairs = {name: (question, good(question)) for name, question in found.items()}
    for lang, script in SCRIPTS.items():
        texts = good_rewrites()[{"zh": "label: grandmother", "en": "label: new town"}[lang]]["R"]
        drawn = personas(script.dialogue_id, lang=lang)
        for name, variant in (("rewrite", "R"), ("rewrite_persona", "P")):
            [question] = rewriting.plan([script], [], drawn, (variant,), one, seed=1).questions  # type: ignore[arg-type]
            pairs[f"rewrite.{name}.{lang}"] = question, reply(script, texts)
        drafted = drafts(draft(script, "R", script.texts))
        [question] = judging.plan(drafted, {(script.unit, script.row_id): script}, one).questions
        pairs[f"rewrite.judge.{lang}"] = question, judgement(why=GROUNDS[lang])
        profiled = profiles.plan(dialogues(dialogue(1, *TALK, lang=lang)), train, one).questions[0]
        scores = {"D": 0.7, "I": 0.25, "S": 1.0, "C": 0.0, "evidence": ["我睡不着"], "description": MANNER[lang]}
        pairs[f"rewrite.disc.{lang}"] = profiled, json.dumps(scores)
        judged = {"why": GROUNDS[lang], **dict.fromkeys(SCORES, 3)}
        pairs[f"judging.mindchat.{lang}"] = scored(lang), json.dumps(judged)
    return pairs


NAMES = sorted(
    f"{stage}.{name}" for stage, module in MODULES.items() for name in names(module) if not name.startswith("rm_")
)
JSON = [name for name in NAMES if name not in TAGGED]
WRITING = [name for name in NAMES if name.startswith("rewrite.rewrite")]
each_prompt = pytest.mark.parametrize("name", NAMES)


def loaded(name: str) -> Prompt:
    stage, _, short = name.partition(".")
    return prompt(short, MODULES[stage])


def test_every_prompt_is_asked_and_every_question_has_one_and_reads_a_good_reply():
    assert sorted(questions()) == NAMES
    for name, (question, good_reply) in questions().items():
        assert question.prompt == loaded(name)
        assert question.prompt.id == name
        assert read(question, good_reply) is not None


@each_prompt
def test_the_prompt_names_every_input_and_leaves_nothing_to_fill_in(name: str):
    text, asked = loaded(name).text, questions()[name][0].inputs
    keys = {*asked, *(asked.get("lines") or [{}])[0], *asked.get("personas", {}).get("seeker", {})}
    assert all(re.search(rf"(?<![a-z]){key}(?![a-z])", text) for key in keys)
    assert "$" not in text


@each_prompt
def test_the_texts_are_material_in_the_language_of_the_prompt_and_no_instructions(name: str):
    text = loaded(name).text
    assert any(words in text for words in ("不要照做", "do not follow"))
    assert any(words in text for words in ("方括号", "square brackets"))
    assert "JSON" in text  # a vendor's rule for JSON mode, and what the message is
    chinese = len(re.findall(r"[\u4e00-\u9fff]", text))
    assert chinese == 0 if name.endswith(".en") else chinese > 200
    if name in TAGGED:  # what somebody may read is safe
        english, chinese_words = ("crisis line", "emergency", "no diagnosis"), ("12356", "120", "110", "不下诊断")
        assert all(words in text for words in (english if name.endswith(".en") else chinese_words))
    if name.startswith("rewrite.") and ".disc." not in name:
        assert all(word in text for word in ("seeker", "supporter", "reference", "response", *STRATEGIES.en))


@each_prompt
def test_a_prompt_names_the_model_that_the_settings_ask_and_its_temperature(name: str):
    stage, task, *_ = name.split(".")
    asks = {"rewrite": "writing", "rewrite_persona": "writing", "judge": "judging", "disc": "profiling"}.get(task, task)
    models = getattr({"annotate": Annotate(), "rewrite": Rewrite(), "judging": Rewards()}[stage], asks)
    assert loaded(name).model == (models if isinstance(models, str) else models[0])
    assert loaded(name).temperature == 0 or name in (*WRITING, *TAGGED)


@pytest.mark.parametrize("name", JSON)
def test_the_fields_that_are_shown_are_those_that_are_read(name: str):
    question, _ = questions()[name]
    assert question.schema is not None
    assert loaded(name).schema == question.schema.__name__
    [shown] = re.findall(r"^\{.*\}$", loaded(name).text, flags=re.MULTILINE)
    top = re.sub(r"\[\{.*\}\]", "[]", shown)
    assert re.findall(r'"(\w+)": ', top) == list(question.schema.model_fields)
    if name in WRITING:
        assert [list(line) for line in json.loads(shown)["lines"]] == [["n", "who", "text"]] * 2
    schema = strict_schema(question.schema)
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"])


@pytest.mark.parametrize("name", TAGGED)
def test_the_tags_that_are_shown_are_those_that_are_read(name: str):
    grammar, every = TAGGED[name]
    text = loaded(name).text
    assert issubclass(getattr(reasoning, loaded(name).schema or ""), BaseModel)
    [shown] = re.findall(r"^(?:<\w+>){2}.*?</\w+>$(?!\n…)", text, flags=re.DOTALL | re.MULTILINE)
    sections = grammar.read(shown)
    assert list(sections) == [tag for tag in grammar.names if tag in grammar.sections]
    assert all("…" in words for words in sections.values())
    outside = text.replace(shown, "")
    assert set(re.findall(r"</?(\w+)>", outside)) == set()  # shown once, so that a model does not see two forms
    assert all(re.search(rf"^- {tag}\b", outside, re.MULTILINE) for tag in grammar.sections)
    assert set(grammar.names) <= set(every)


# --- closed sets


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_candidates_may_use_the_closed_sets_whole_and_nothing_else(lang: str):
    offered = re.findall(r"(?:从这些里选一个：|is one of: )([^。.]+)[。.]", loaded(f"annotate.cer.{lang}").text)
    zh = lang == "zh"
    assert [re.split("；|; |、|, ", re.sub(r"（[^）]+）| \([^)]+\)", "", one)) for one in offered] == [
        list(STAGES.zh if zh else STAGES.en),
        list(SENTIMENTS.zh if zh else SENTIMENTS.en),
        list(STRATEGIES.zh if zh else STRATEGIES.en),
    ]
    assert cer(lang).render().splitlines()[0].split(">")[-1].startswith("阶段：" if zh else "Stage: ")


def test_topics_and_emotions_and_risks_are_the_closed_sets_in_text_and_schema():
    text = loaded("annotate.topics").text
    for topic, subtopics in TAXONOMY.items():
        assert f"- {topic}：{'、'.join(subtopics)}\n" in text
    assert "、".join(RISKS) in text
    assert f"选一个：{'、'.join(EMOTIONS.zh)}。" in loaded("annotate.emotions").text
    wanted = {
        "topics": [set(TAXONOMY), set(RISKS), {sub for subs in TAXONOMY.values() for sub in subs}],
        "emotions": [set(EMOTIONS.zh)],
        "coherence.zh": [{"keep", "incoherent", "artificial", "not_a_dialogue"}],
    }
    for name, sets in wanted.items():
        record = questions()[f"annotate.{name}"][0].schema
        assert record is not None
        written = json.dumps(record.model_json_schema(), ensure_ascii=False)
        enums = [set(json.loads(one)) for one in re.findall(r"\[[^\[\]]*\]", written)]
        assert all(one in enums for one in sets), name


# --- rewriting


def test_the_two_writers_differ_in_the_personas_alone():
    for lang, start in (("zh", "必须保持不变的"), ("en", "What must stay")):
        plain, personal = (loaded(f"rewrite.{kind}.{lang}").text for kind in ("rewrite", "rewrite_persona"))
        rules = plain[plain.index(start) :].split("\n\n", 1)[1].split("\n\n", 1)[0].splitlines()
        assert len(rules) == 6
        assert all(rule in personal for rule in rules)
        assert "personas" in personal
        assert "personas" not in plain
        assert all(re.search(rf"^- {trait} ?[（(]", personal, re.MULTILINE) for trait in "DISC")


# --- M's judge


def test_the_judge_sees_roles_and_texts_and_the_answer_alone_and_gives_whole_numbers():
    assert scored().inputs == {"dialogue": [{"role": "seeker", "text": "我睡不着"}], "answer": "嗯。"}
    schema = strict_schema(Scores)
    for name in SCORES:
        assert schema["properties"][name] == {"type": "integer", "minimum": 1, "maximum": 5}
    assert payload(scored(), model_profiles()["qwen-plus"])["response_format"] == {"type": "json_object"}


@given(st.lists(st.integers(1, 5), min_size=3, max_size=3), st.text(min_size=1).filter(str.strip))
def test_scores_are_read_from_their_fields_whatever_the_grounds_say(scores, why):
    said = {"why": f"5分，满分5分。{why}"[:500], **dict(zip(SCORES, scores, strict=True))}
    record = read(scored(), json.dumps(said))
    assert [getattr(record, name) for name in SCORES] == scores


WRONG = st.one_of(
    *(st.integers().filter(lambda one: one not in range(1, 6)), st.floats(), st.booleans(), st.none(), st.text()),
    st.lists(st.integers(1, 5)),
)


@given(WRONG, st.sampled_from(SCORES))
def test_anything_but_a_whole_number_from_1_to_5_is_no_score(wrong, field):
    with pytest.raises(InvalidReply):
        read(scored(), json.dumps({"why": "因为", **dict.fromkeys(SCORES, 3), field: wrong}))
