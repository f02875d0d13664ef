"""The taxonomy is the site's own, and M's ten categories cover it."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from schemas.taxonomy import CATEGORIES, CATEGORY_OF, TAXONOMY, main_topics_of, split_keywords

SUBTOPICS = sorted({subtopic for subtopics in TAXONOMY.values() for subtopic in subtopics})


def test_it_is_the_question_picker_of_xinli001(shared: Path):
    written = json.loads((shared.parent / "spec" / "xinli001_taxonomy.json").read_text(encoding="utf-8"))
    picker = {topic: tuple(subtopics) for topic, subtopics in written.items() if not topic.startswith("_")}
    assert picker == TAXONOMY


def test_m_counts_ten_categories_and_only_an_affair_stands_under_two_topics():
    assert len(CATEGORIES) == 10
    assert CATEGORY_OF.keys() == TAXONOMY.keys()
    assert [topic for topic, category in CATEGORY_OF.items() if category == "Other"] == ["科普", "热点"]
    assert main_topics_of("出轨") == ("恋爱", "婚姻")
    assert [subtopic for subtopic in SUBTOPICS if len(main_topics_of(subtopic)) != 1] == ["出轨"]
    assert main_topics_of("天气") == ()


def test_the_topic_is_the_first_one_named_or_follows_from_a_subtopic():
    for keywords, topic, subtopics in (
        (["恋爱", "恋爱经营"], "恋爱", ["恋爱经营"]),
        (["恋爱经营"], "恋爱", ["恋爱经营"]),
        (["出轨"], None, ["出轨"]),
        (["出轨", "离婚"], "婚姻", ["出轨", "离婚"]),
        (["婚姻", "恋爱"], "婚姻", ["恋爱"]),
        ([" 情绪 ", "", "情绪"], "情绪", []),
        ([], None, []),
    ):
        assert split_keywords(keywords) == (topic, subtopics)


@given(st.lists(st.sampled_from([*TAXONOMY, *SUBTOPICS, "天气", " 天气"])))
def test_no_keyword_vanishes(keywords: list[str]):
    topic, subtopics = split_keywords(keywords)
    words = {word.strip() for word in keywords}
    assert words | {topic} == {*subtopics, topic}
    assert topic is None or topic in TAXONOMY
    assert topic not in subtopics
    assert len(subtopics) == len(set(subtopics))
