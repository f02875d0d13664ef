"""Finding many words in one text: against trying each of them alone."""

import re

from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.finder import Finder, alternatives


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
