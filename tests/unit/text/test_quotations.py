"""What is quoted, and whether it stands in another text as a reader has it."""

from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.quotations import in_corners, n_letters, quotations, stands_in, unquoted

POST = "「方便嗎？」他總這麼問。我说：没事…可是 我睡不着，\n第２天也一样。ＯＫ。"


def test_a_quotation_stands_in_a_text_whatever_width_marks_and_script_and_parts_may_be_left_out():
    for quoted, reads, exact in (
        ("我睡不着", True, True),
        ("可是我睡不着", True, False),  # a blank stood between
        ("方便吗", True, False),  # in the other script
        ("我睡不着，第2天也一样", True, False),
        ("ok", True, False),
        ("我说：没事……第2天也一样", True, False),
        ("第2天也一样……我睡不着", False, False),  # turned round
        ("我睡不着觉", False, False),
        ("我说没事，我睡不着", False, False),  # left out, and not said so
        ("我说没事...我睡得着", False, False),
    ):
        assert (stands_in(quoted, ["别的", POST]), stands_in(quoted, [POST], exactly=True)) == (reads, exact), quoted
    assert not stands_in("我睡不着", [])


def test_what_is_quoted_by_its_marks():
    text = '他说「心里的“第一”没了」，又说“慢慢来”；It’s ‘fine’, they say "no"。「没有关上'
    assert in_corners(text) == ["心里的“第一”没了"]
    assert quotations(text) == ["第一", "慢慢来", "fine", "no"]
    assert unquoted(text) == "他说，又说；It’s , they say 。「没有关上"
    assert [n_letters(one) for one in ("嗯", "？！", "我 18", "a_b")] == [1, 0, 3, 2]


@given(st.text(max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_any_part_of_a_text_stands_in_it(text, start, length):
    assert stands_in(text[start : start + length], [text], exactly=True)
