"""What stands around a span of a text."""

import pytest

from pipelines.text.pii.context import context, crossing


def test_words_stand_before_and_behind_on_the_same_line():
    text = "上一行\n我的室友小张说她累了\n下一行"
    start = text.index("小张")
    around = context(text, start, start + 2)
    assert (around.left, around.right) == ("我的室友", "说她累了")
    assert (around.words_before, around.words_behind) == (["我", "的", "室友"], ["说", "她", "累", "了"])
    assert around.borders == (True, True)


@pytest.mark.parametrize(
    ("text", "span", "crosses"), [("上海大学生返乡", "上海大学", True), ("上海大学的学生", "上海大学", False)]
)
def test_a_word_that_reaches_over_an_end_is_seen(text, span, crosses):
    start = text.index(span)
    assert (crossing(text, start, start + len(span))[1] > 0) == crosses


def test_what_is_cheaper_to_read_as_words_has_a_lower_margin():
    def margin(text: str, span: str) -> float:
        start = text.index(span)
        return context(text, start, start + len(span)).margin

    assert margin("他非常高兴地走了", "高兴") < margin("他把高睿琪叫走了", "高睿琪")
