"""The lexicons and sentences of the rules: complete, closed, and free of what no reply may hold."""

import re
from collections import Counter
from string import Formatter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.annotate.rules.wording import phrases, pick
from pipelines.text.finder import FOLDER, Finder, alternatives, lexicon
from pipelines.text.pii.redaction import find
from pipelines.text.words import spelled
from schemas.labels import ANSWERABLE_STRATEGIES, EMOTIONS, RISKS, SENTIMENT_OF, SENTIMENTS
from schemas.reasoning import COE_TAGS, tags
from schemas.taxonomy import TAXONOMY

_SLOTS = {"you", "quote", "cause", "soothe", "explain", "step", "ask", "question", "reframe", "restated"} | {
    *("n", "core", "course", "word", "degree", "place", "first", "items", "share", "last", "heard", "who")
}
CONVEYED = {"care", "encouragement"}


def _strings(table):
    """Every string in a table, however deep."""
    if isinstance(table, str):
        return [table]
    return [text for part in (table.values() if isinstance(table, dict) else table) for text in _strings(part)]


def test_every_emotion_has_a_sentiment():
    assert set(SENTIMENT_OF) == set(EMOTIONS.en)
    assert set(SENTIMENT_OF.values()) == set(SENTIMENTS.en)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_every_emotion_has_words_and_sentences(lang):
    words = lexicon(f"feelings.{lang}")
    named = {name for name in words if name not in ("none", "conveyed", "grave")}
    assert named == set(EMOTIONS.en) - CONVEYED == set(phrases(lang)["emotion"])
    assert set(words["conveyed"]) == CONVEYED
    assert all(set(words[name]) == {"mild", "plain", "strong"} for name in named)


def test_every_topic_and_subtopic_has_words():
    words = lexicon("topics")
    assert set(words) - {"weights"} == set(TAXONOMY) == set(words["weights"])
    for topic, subtopics in TAXONOMY.items():
        assert set(words[topic]) == set(subtopics)
        assert all(words[topic].values())
    assert set(phrases("zh")["topic"]) == {*TAXONOMY, "none"}


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_every_strategy_danger_and_belief_has_sentences(lang):
    said = phrases(lang)
    assert {label.en for label in ANSWERABLE_STRATEGIES} - {"Self-disclosure"} <= set(said["strategy"])
    assert set(said["danger"]) == set(RISKS)
    if lang == "zh":
        assert set(said["belief"]) == set(lexicon("markers.zh")["beliefs"])
    assert set(lexicon("markers.en")["beliefs"]) == set(lexicon("markers.zh")["beliefs"])


@pytest.mark.parametrize("name", [path.stem for path in sorted(FOLDER.glob("phrases.*.toml"))])
def test_what_the_rules_say_is_fit_to_be_said(name):
    """No personal data, no tag, no quotation mark of the post's own words but around a slot, no unknown slot."""
    texts = _strings(lexicon(name))
    assert len(texts) > 150
    bare = [re.sub(r"\{\w+\}", "这", text) for text in texts]
    assert find(pl.Series(bare)).is_empty()
    for text in texts:
        assert not tags(text, COE_TAGS)
        assert {slot for _, slot, _, _ in Formatter().parse(text) if slot is not None} <= _SLOTS
        assert all(span.startswith("{") and span.endswith("}") for span in re.findall("「([^」]*)」", text))


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_every_step_says_when_it_fits(lang):
    """An emotion alone is enough only where the step is said to be fit for whoever feels it; every name exists."""
    circles = set(lexicon(f"markers.{lang}")["circles"])
    for table in lexicon(f"steps.{lang}")["step"]:
        assert set(table) <= {"say", "emotion", "topic", "who", "when", "unless", "intent", "any_cause"}
        assert set(table.get("emotion", ())) <= set(EMOTIONS.en) - CONVEYED
        assert set(table.get("topic", ())) <= set(TAXONOMY)
        assert set(table.get("who", ())) <= circles
        assert set(table.get("intent", ())) <= {"advice", "understanding"}
        conditions = [name for name in ("emotion", "topic", "who", "when") if name in table]
        assert len(conditions) >= 2 or (conditions == ["emotion"] and table.get("any_cause"))
        for name in ("when", "unless"):
            assert re.compile(table.get(name, "x")).search("") is None
    for emotion in set(EMOTIONS.en) - CONVEYED - {"calm", "joy", "gratitude", "relief", "fondness"}:
        assert any(emotion in table.get("emotion", ()) for table in lexicon(f"steps.{lang}")["step"]), emotion


def _is_pattern(text):
    return any(mark in text for mark in "()^$*+{}\\")


def _named(table, *path):
    """Every string in a table, however deep, with its place."""
    if isinstance(table, str):
        yield path, table
    elif isinstance(table, dict | list):
        for key, part in table.items() if isinstance(table, dict) else enumerate(table):
            yield from _named(part, *path, key)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        (f"{file}.{lang}", least)
        for lang in ("zh", "en")
        for file, least in (("markers", 60), ("contexts", 5), ("steps", 9))
    ]
    + [("coherence", 4)],
)
def test_every_pattern_compiles_and_matches_no_empty_text(name, least):
    """All that `shaped` and `any_of` may get; a list of words is a pattern as well."""
    patterns = {path: text for path, text in _named(lexicon(name)) if path[-1] != "say" and path[0] != "why"}
    assert sum(map(_is_pattern, patterns.values())) >= least
    for path, pattern in patterns.items():
        may_be_empty = path == ("causes", "of_another")  # it is asked of what stands between a person and a connective
        assert may_be_empty or re.compile(pattern, re.IGNORECASE).search("") is None, path


@pytest.mark.parametrize(
    "name", ["topics", *(f"{file}.{lang}" for file in ("feelings", "markers") for lang in ("zh", "en"))]
)
def test_no_list_names_a_word_twice(name):
    lists = {path: text for path, text in _named(lexicon(name)) if "|" in text and not _is_pattern(text)}
    assert len(lists) > 20
    for path, words in lists.items():
        assert [word for word, times in Counter(spelled(words)).items() if times > 1] == [], path


# Patterns that are searched for between two places of a text, where ^ is the beginning of the text and of no clause.
BY_PLACE = {
    "causes": {
        "ever_after",
        "regretted",
        "suffered",
        "names",
        "follows",
        "opinion",
        "wishes",
        "points",
        "does",
        "lessened",
    },
    "judging": {"patterns"},
    "grave": {"death", "loss", "not_lost"},
    "reports": {"patterns", "frightened", "frightens", "theirs", "for_me"},
    "passing": {"turn", "moment"},
    "times": {"past", "present", "over"},
    "holders": {"played", "lived", "subject"},
    "diagnosis": {"patterns"},
    "beliefs": None,
    "unfelt": None,
}


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_no_pattern_that_is_searched_by_place_asks_where_the_text_begins(lang):
    looked_at = 0
    for path, pattern in _named(lexicon(f"markers.{lang}")):
        names = BY_PLACE.get(path[0], set())
        if names is None or path[1] in names:
            looked_at += 1
            assert "^" not in re.sub(r"\[(?:\\.|[^\]])*\]", "", pattern), path
    assert looked_at > 20


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_what_a_whole_text_is_asked_first_does_not_ask_where_a_clause_ends(lang):
    """A diagnosis is looked for in the whole text before any clause."""
    for pattern in lexicon(f"markers.{lang}")["diagnosis"]["patterns"]:
        assert "$" not in pattern
        assert "(?=" not in pattern


def test_the_longest_word_wins_and_a_word_of_two_lists_counts_to_the_first():
    finder = Finder([("one", "开心|累"), ("two", "不开心|累")], "zh")
    assert [(hit.start, hit.name) for hit in finder.hits("我不开心，很累")] == [(1, "two"), (6, "one")]


@given(st.lists(st.text("ab一c.", min_size=1, max_size=4), min_size=1), st.text("ab一c. ", max_size=30))
def test_words_that_begin_alike_are_found_as_if_each_were_tried_alone(words, text):
    longest_first = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    for lang, one_by_one in (("zh", longest_first), ("en", rf"(?<![\w'])(?:{longest_first})(?!\w)")):
        found = re.finditer(alternatives(words, lang), text)
        assert [one.span() for one in found] == [one.span() for one in re.finditer(one_by_one, text)]


def test_english_words_are_whole_and_of_any_case():
    finder = Finder([("sad", "sad|can't sleep")], "en")
    assert [hit.start for hit in finder.hits("SAD saddle, sad; I can't sleep")] == [0, 12, 19]


def test_sentences_are_picked_by_the_text_and_evenly():
    options = ["a", "b", "c"]
    assert pick(options, "one", "two") == pick(options, "one", "two")
    picked = [pick(options, str(n)) for n in range(600)]
    assert all(picked.count(option) > 150 for option in options)
