"""Texts that say one thing a thousand times: read in time, and as the rules read any other."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.annotate.rules.clauses import clauses
from pipelines.annotate.rules.danger import dangers
from pipelines.annotate.rules.feelings import _spoken_of, _title_self, whose
from pipelines.annotate.rules.people import another_s, people
from pipelines.annotate.rules.reading import read
from pipelines.text.finder import worded

# Seconds of CPU, many times what is needed; looking again at all that was written before takes minutes.
ENOUGH = 8
LENGTH = 40_000


def times(words, length=LENGTH):
    return words * (length // len(words))


def taken(work, *given):
    since = time.process_time()
    work(*given)
    return time.process_time() - since


@pytest.mark.parametrize("words", ["带个女儿，", "带个女儿", "她带个女儿，"])
def test_kin_without_end_is_read_in_time(words):
    assert taken(people, times(words)) < ENOUGH


@pytest.mark.parametrize(
    "text", ["牵挂" + times("也"), "牵挂" + times("再也"), "药片" + times("两"), "撑不住" + times("也")]
)
def test_no_sign_of_danger_is_looked_for_again_and_again(text):
    assert taken(dangers, text) < ENOUGH


@pytest.mark.parametrize(
    "words",
    [
        *("我很难过", "我很难过，", "他很难过", "对他很难过", "想他就难过", "以前我很难过", "妈妈说我没用"),
        *("我很开心", "我很开心。", "很平静。", "怕我", "说难过，", "我抑郁"),
    ],
)
def test_a_feeling_without_end_is_read_in_time(words):
    assert taken(read, times(words), "zh") < ENOUGH


@pytest.mark.parametrize("words", [" i am sad", "i am sad. ", " she makes me sad", " i used to be sad"])
def test_an_english_one_as_well(words):
    assert taken(read, times(words), "en") < ENOUGH


@pytest.mark.parametrize(
    ("text", "another"),
    [
        ("她说她离异，带个女儿", True),
        ("她说她离异，今年四十，带个女儿", True),
        ("她说她离异。带个女儿", False),
        ("她说她离异，我带个女儿", False),
        ("我今年四十，带个女儿", False),
        ("带个女儿", False),
    ],
)
def test_whose_kin_it_is_is_told_by_the_clauses_before(text, another):
    assert bool(another_s(text)) is another


# --- whose a feeling is, told by going through all persons before it


def one_by_one(text, clause, place, lang):
    own, holder = not clause.spoken, None
    for found in _spoken_of(text, clause.start, clause.end, lang):
        if found.start(found.lastgroup or 0) >= place:
            break
        if found["object_of"] or found["reflexive"]:
            continue
        if found["verb_of"] and worded(lang, "holders", "back_to_self").search(text, found.end(), place):
            continue
        if found["self"]:
            if not (found["said_of"] and holder):
                own, holder = not clause.spoken, None
        elif clause.line > 0 or found["other"] not in _title_self(lang):
            own, holder = False, found["other"]
    return own, holder


CHINESE = [
    *("我", "他", "想", "怕", "对", "说", "妈妈", "自己", "就", "便"),
    *("总会", "的时候", "难过", "女生", "觉得", "看", "我妈", "“", "”", "\n"),
]
ENGLISH = [
    *("i", "he", "my", "about", "hate", "miss", "says", "myself", "me"),
    *("sad", "poster", "mom", "they", "love", "saw", ",", "\n"),
]


@given(st.lists(st.sampled_from(CHINESE), max_size=10), st.booleans())
def test_whose_it_is_follows_from_all_persons_before(words, titled):
    text = "".join(words)
    for clause in clauses(text, titled=titled):
        for place in range(clause.start, clause.end + 1):
            assert whose(text, clause, place, "zh") == one_by_one(text, clause, place, "zh")


@given(st.lists(st.sampled_from(ENGLISH), max_size=10), st.booleans())
def test_in_english_at_the_beginning_of_each_word(words, titled):
    text = " ".join(words)
    for clause in clauses(text, titled=titled):
        for place in range(clause.start, clause.end + 1):
            if place == 0 or place == len(text) or text[place - 1] == " ":
                assert whose(text, clause, place, "en") == one_by_one(text, clause, place, "en")
