"""Lines of a text in a column: never fewer than there are, or the end of a text is cut off."""

from hypothesis import given
from hypothesis import strategies as st

from pipelines.review.line_counts import count_lines


def test_lines_of_texts_counted_by_hand() -> None:
    assert count_lines("", 40) == 1
    assert count_lines("一" * 16, 40) == 1  # (40 - 2.25) / 2.25 = 16.8
    assert count_lines("一" * 17, 40) == 2
    assert count_lines("一\n二\r\n三\r四", 40) == 4
    assert count_lines("ab " * 10, 40) == 1  # 34.5 of 37.75
    assert count_lines("一" * 12 + "abcdefghijkl", 40) == 2  # the word moves down as a whole
    assert count_lines("a" * 100, 40) == 4  # a word longer than a line is broken: 115 / 37.75


@given(st.text(st.characters(codec="utf-8"), max_size=300), st.integers(20, 120))
def test_more_text_or_less_room_never_takes_fewer_lines(text: str, width: int) -> None:
    assert count_lines(text + "一", width) >= count_lines(text, width)
    least = sum(-(-len(line) // width) for line in text.split("\n"))  # were every character as narrow as a digit
    assert count_lines(text, width) >= max(least, 1)
