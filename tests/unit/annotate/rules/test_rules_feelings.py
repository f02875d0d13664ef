"""Feelings, their strength, denial and holder; intents and causes: on sentences that we invented (feelings.toml)."""

import tomllib
from pathlib import Path

import pytest

from pipelines.annotate.rules.clauses import clauses
from pipelines.annotate.rules.intents import main_intent
from pipelines.annotate.rules.reading import language, read

SENTENCES = tomllib.loads(Path(__file__).with_name("feelings.toml").read_text(encoding="utf-8"))["sentence"]


def _read(sentence):
    return read(sentence["text"], sentence.get("lang", "zh"))


def _found(sentence):
    """The words that were read, by what they were read as."""
    reading = _read(sentence)
    felt = {reading.word(one): one.intensity for one in reading.own}
    denied = {reading.word(one) for one in reading.feelings if one.denied and one.own}
    others = {reading.word(one) for one in reading.feelings if not one.own}
    return felt, denied, others


def _rates(kind):
    """Precision and recall of the words of a kind over all sentences."""
    hit = found = wanted = 0
    for sentence in SENTENCES:
        felt, denied, others = _found(sentence)
        got = {"felt": set(felt), "denied": denied, "others": others}[kind]
        want = set(sentence.get(kind, ()))
        hit, found, wanted = hit + len(got & want), found + len(got), wanted + len(want)
    return hit / found, hit / wanted


def test_there_are_sentences_enough_in_both_languages():
    assert len(SENTENCES) >= 60
    assert sum(sentence.get("lang") == "en" for sentence in SENTENCES) >= 15


@pytest.mark.parametrize(
    ("kind", "precision", "recall"), [("felt", 0.9, 0.9), ("denied", 0.8, 0.8), ("others", 0.8, 0.8)]
)
def test_feelings_are_found_and_told_apart(kind, precision, recall, record_property):
    measured = _rates(kind)
    record_property("precision", measured[0])
    record_property("recall", measured[1])
    assert measured[0] >= precision
    assert measured[1] >= recall


def test_how_strongly_a_feeling_is_told_is_read_from_its_adverbs():
    pairs = []
    for sentence in SENTENCES:
        felt, _, _ = _found(sentence)
        pairs += [(felt[word], wanted) for word, wanted in sentence.get("felt", {}).items() if word in felt]
    assert sum(got == wanted for got, wanted in pairs) / len(pairs) >= 0.85
    assert all(abs(got - wanted) <= 1 for got, wanted in pairs)


def test_what_is_asked_for_is_read_from_the_form_of_the_question():
    asked = [sentence for sentence in SENTENCES if "intent" in sentence]
    right = [main_intent(_read(sentence).questions)[0] == sentence["intent"] for sentence in asked]
    assert sum(right) / len(right) >= 0.9


def test_causes_are_the_words_behind_or_before_their_connectives():
    told = [sentence for sentence in SENTENCES if "cause" in sentence]
    right = []
    for sentence in told:
        reading = _read(sentence)
        right.append(bool(reading.causes) and reading.causes[0].span.of(reading.text) == sentence["cause"])
    assert sum(right) / len(right) >= 0.85


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda one: one["text"][:20])
def test_whatever_is_read_stands_in_the_text(sentence):
    reading = _read(sentence)
    for span in (
        *(one.span for one in reading.causes),
        *(one.span for one in reading.beliefs),
        *(one.span for one in reading.questions),
    ):
        assert 0 <= span.start < span.end <= len(reading.text)
        assert span.of(reading.text).strip()
    assert all(reading.clauses[one.clause].start <= one.start < one.end for one in reading.feelings)


# --- one rule each


@pytest.mark.parametrize(
    ("text", "emotion"),
    [
        ("我一直不太开心", "sadness"),  # a word of its own, no denied joy
        ("这件事让我没法平静", "anxiety"),
        ("我特别难过", "sadness"),  # the 别 of 特别 denies nothing
        ("我无比失望", "disappointment"),  # nor does the 无 of 无比
    ],
)
def test_what_prevails(text, emotion):
    assert read(text, "zh").ranked()[0].emotion == emotion


@pytest.mark.parametrize("text", ["我恨不得早点回家", "积累了很多经验", "哪怕下雨也去", "不耐烦的人很多，他麻烦你了"])
def test_a_word_inside_another_one_is_no_feeling(text):
    assert not [one for one in read(text, "zh").feelings if one.emotion in ("anger", "exhaustion", "fear")]


def test_what_stands_in_quotation_marks_is_somebody_elses():
    reading = read("她对我吼“我恨透了你，看见你就恶心”，然后走了", "zh")
    assert not reading.own


def test_in_a_title_a_girl_is_the_writer_and_in_a_story_she_is_not():
    assert read("大学女生最近很焦虑怎么办\n我今年大三。", titled=True).own
    assert not read("我们班有个女生很焦虑。", titled=False).own


def test_a_title_says_what_is_asked():
    text = "怎么和室友相处？\n她总是半夜才睡。为什么有人这样？这是什么心理？"
    assert main_intent(read(text, titled=True).questions)[0] == "advice"


def test_a_question_that_is_told_of_somebody_else_is_not_the_writers():
    assert not read("他问我为什么不回消息。", "zh").questions


def test_clauses_are_cut_at_marks_and_at_spaces_between_characters():
    text = "我很累 也没办法，他说“你太敏感了，别想”。（真的）<L1>好"
    assert [text[one.start : one.end] for one in clauses(text, titled=False)] == [
        "我很累",
        "也没办法",
        "他说",
        "你太敏感了",
        "别想",
        "（真的）",
        "L1",
        "好",
    ]


@pytest.mark.parametrize(
    ("text", "lang"), [("我很好", "zh"), ("I am fine", "en"), ("我 love 你们 so", "zh"), ("", "zh")]
)
def test_the_language_is_told_by_its_characters(text, lang):
    assert language(text) == lang
