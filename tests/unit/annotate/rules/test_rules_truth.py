"""What the rules may not claim: a cause that is denied, a diagnosis or a death as a feeling, advice that does not fit.

On sentences that we invented (truth.toml), and on every real post and talk; no candidate for two histories.
"""

import json
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from rules_inputs import cer, histories, posts

from pipelines.annotate.rules.advice import Need, circle, fitting, never, steps
from pipelines.annotate.rules.answers import ANSWERS
from pipelines.annotate.rules.danger import dangers
from pipelines.annotate.rules.ecot import suggestions
from pipelines.annotate.rules.reading import read
from pipelines.annotate.rules.story import story
from pipelines.store import Store
from schemas.reasoning import Cer, Ecot

TABLES = tomllib.loads(Path(__file__).with_name("truth.toml").read_text(encoding="utf-8"))


def _name(case):
    return case["text"][:24]


def test_there_are_sentences_enough():
    assert len(TABLES["cause"]) >= 40
    assert len(TABLES["feeling"]) >= 40
    for table in TABLES.values():
        assert sum(case.get("lang") == "en" for case in table) >= 12


@pytest.mark.parametrize("case", TABLES["cause"], ids=_name)
def test_a_cause_is_what_the_writer_says_it_is(case):
    reading = read(case["text"], case.get("lang", "zh"))
    named = [one.span.of(reading.text) for one in reading.causes if not one.pleasant and one.weight >= 5]
    assert (named[0] if named else "") == case["cause"]


@pytest.mark.parametrize("case", TABLES["feeling"], ids=_name)
def test_a_feeling_is_what_somebody_says_they_feel(case):
    reading = read(case["text"], case.get("lang", "zh"))
    felt = {reading.word(one) for one in reading.own if not one.grave}
    denied = {reading.word(one) for one in reading.feelings if one.denied}
    assert set(case.get("felt", ())) <= felt
    assert set(case.get("denied", ())) <= denied
    assert not felt & set(case.get("unfelt", ()))
    assert not denied & felt


# --- death and danger are not said back


@pytest.mark.parametrize(
    "text",
    [
        "外公去世了，我很想他，夜里总是哭。",
        "我不想活了，每天都很累。",
        "奶奶病逝以后家里空空的，我很难过，我该怎么办？",
        "我想过自杀，可是舍不得孩子。",
        "朋友出车祸身亡了，我一直自责。",
    ],
)
def test_neither_letter_nor_reply_takes_up_danger_or_death_as_a_feeling(text):
    reading = read(text)
    heavy = [text[reading.clauses[n].start : reading.clauses[n].end] for n in reading.grave]
    assert heavy
    letter = Ecot.parse(ANSWERS["ecot"]({"question": text})).answer
    reply = cer("zh", text).response
    assert not [clause for clause in heavy if clause in letter or clause in reply]
    safe = ("安全" in letter, "安全" in reply)
    assert safe == (bool(dangers(text)),) * 2
    assert "从小处开始" not in reply
    assert "试一试" not in letter


@pytest.mark.parametrize(
    "text", ["My dad died in March and I feel so alone.", "i want to kill myself, i feel so alone"]
)
def test_nor_does_an_english_one(text):
    reply = cer("en", text).response
    assert not any(one in reply for one in ("died", "kill"))
    assert ("safe" in reply) == bool(dangers(text))
    assert "Is that right" not in reply


@pytest.mark.parametrize(
    ("text", "lang", "bereaved"),
    [
        ("爷爷去年去世了。", "zh", True),
        ("我怕爷爷会去世。", "zh", False),
        ("我梦到爸爸去世了。", "zh", False),
        ("电影里他死了。", "zh", False),
        ("我在班里社会性死亡了。", "zh", False),
        ("My grandma passed away.", "en", True),
        ("My phone died.", "en", False),
        ("I was scared to death.", "en", False),
        ("I passed the exam.", "en", False),
        ("I am afraid my mother could die.", "en", False),
    ],
)
def test_somebody_has_died_only_where_it_is_told(text, lang, bereaved):
    assert story(text, lang).bereaved is bereaved


@pytest.mark.parametrize(
    ("text", "another"),
    [
        ("女儿说她不想活了，我很害怕。", True),
        ("我弟弟想自杀，怎么劝他？", True),
        ("我不想活了，爸妈不知道。", False),
        ("他走了，我想自杀。", False),
    ],
)
def test_danger_to_somebody_else_is_answered_for_them(text, another):
    letter = Ecot.parse(ANSWERS["ecot"]({"question": text})).answer
    assert story(text).for_another is another
    assert ("不要让他一个人待着" in letter) is another
    assert all(number in letter for number in ("12356", "120", "110"))


def test_a_diagnosis_is_told_as_what_lies_behind():
    text = "我确诊了抑郁症，最近很烦躁，怎么办？"
    told = story(text)
    assert told.diagnosis
    assert told.words == ("烦躁",)
    assert "背景" in ANSWERS["coe"]({"question": text, "answer": "好。"})


def test_a_trouble_of_the_past_that_is_over_is_no_feeling_of_today():
    assert not story("以前我很怕黑，后来治好了。").words
    assert story("以前我很开心，现在我很怕黑。").words == ("怕",)


# --- advice that fits


@pytest.fixture(scope="module")
def stories(real_home):
    return [story(post["text"], titled=True) for post in posts(Store(real_home / "data"))]


def test_every_suggestion_of_every_real_post_fits(stories, record_property):
    """Its conditions hold, and it stands in the letter only where one was asked for and nothing is in danger."""
    suggested = asked = 0
    by_say = {one.say.replace("{you}", "您"): one for one in steps("zh")}
    for told in stories:
        text = told.reading.text
        letter = Ecot.parse(ANSWERS["ecot"]({"question": text})).answer
        asked += told.question is not None and told.intent == "advice"
        for say, step in by_say.items():
            if say not in letter:
                continue
            suggested += 1
            assert told.question
            assert told.intent in step.intents
            assert not told.dangers
            assert not told.bereaved
            assert not never("zh").search(text)
            assert not step.emotions or (told.words and told.emotion in step.emotions)
            assert not step.topics or told.topic in step.topics
            assert not step.who or any(circle(one, "zh").search(text) for one in step.who)
            assert not step.when or step.when.search(text)
            assert not step.unless or not step.unless.search(text)
    record_property("suggestions", suggested)
    record_property("posts that ask for advice", asked)
    assert suggested >= 0.5 * asked


def test_where_nothing_fits_the_letter_asks_and_suggests_nothing(stories):
    unfit = [one for one in stories if one.question and one.intent == "advice" and not suggestions(one)]
    assert unfit
    for told in unfit:
        letter = Ecot.parse(ANSWERS["ecot"]({"question": told.reading.text})).answer
        assert not [one.say for one in steps("zh") if one.say.replace("{you}", "您") in letter]


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_every_suggestion_in_every_real_talk_was_fit(real_home, lang):
    texts = [one.say.replace("{you}", "你") for one in steps(lang)]
    suggested = 0
    for history in histories(Store(real_home / "data"), lang):
        said = "\n".join(turn["text"] for turn in history if turn["role"] == "seeker")
        chain = Cer.parse(ANSWERS["cer"]({"lang": lang, "history": history}))
        here = [one for one, text in zip(steps(lang), texts, strict=True) if text in chain.response]
        suggested += bool(here)
        for step in here:
            assert chain.strategy == "Providing Suggestions"
            assert not never(lang).search(said)
            assert not step.who or any(circle(one, lang).search(said) for one in step.who)
            assert not step.unless or not step.unless.search(said.replace("\u2019", "'"))
    assert suggested > 20


def test_a_condition_that_does_not_hold_forbids_a_step():
    text = "室友每天半夜打游戏，吵得我睡不着，我很烦，怎么办？"
    need = Need("zh", "advice", "annoyance", "人际", text, text)
    assert any("室友" in one for one in fitting(need))
    alone = "每天半夜都睡不着，我很烦，怎么办？"
    assert not any("室友" in one for one in fitting(Need("zh", "advice", "annoyance", "人际", alone, alone)))
    assert not fitting(Need("zh", "validation", "annoyance", "人际", text, text))
    assert not fitting(Need("zh", "advice", "annoyance", "人际", text, text + "我想报复他，"))


# --- one candidate a history


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_two_candidates_are_the_same_only_where_their_histories_are(real_home, lang, record_property):
    seen = defaultdict(set)
    rows = histories(Store(real_home / "data"), lang)
    for history in rows:
        said = json.dumps(history, ensure_ascii=False)
        seen[ANSWERS["cer"]({"lang": lang, "history": history})].add(said)
    record_property("candidates", len(rows))
    record_property("the same as another, their histories being the same", len(rows) - len(seen))
    assert all(len(same) == 1 for same in seen.values())


def test_thanks_in_a_turn_that_tells_of_a_trouble_are_no_relief():
    chain = cer(
        "en",
        "My boyfriend broke up with me.",
        "I am sorry.",
        "He keeps posting things that make it look as if I was the one who did all this to him for no reason. Thanks!",
        "Did you ask him?",
        "He reads what I write and never answers me.\n"
        "His friends act as if they had never met me, and so does his only sister. Thank you",
    )
    assert "happy for you" not in chain.response
    assert chain.stage != "action"


def test_a_plan_is_quoted_by_its_own_words():
    chain = cer("zh", "我很焦虑。", "试试散步？", "工作还是很多，我会试试每天散步半小时。")
    assert "我会试试每天散步半小时" in chain.response
