"""Length and share of Chinese characters are what their definitions say."""

from columns import anything, over, patchwork
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text import keys
from pipelines.text.keys import han_ratio, n_chars


@given(st.lists(st.one_of(st.none(), anything, patchwork), max_size=8))
def test_they_are_the_definitions(texts: list[str | None]):
    assert over(n_chars, *texts) == over(keys.visible, *texts)
    assert over(han_ratio, *texts) == over(keys.share, *texts)


def test_every_character_is_measured_as_defined():
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    rows = ["".join(every[begin : begin + 16]) for begin in range(0, len(every), 16)]
    assert over(n_chars, *rows) == over(keys.visible, *rows)
    assert over(han_ratio, *rows) == over(keys.share, *rows)


def test_nothing_has_no_length_and_no_share():
    assert over(n_chars, None, "", " \n\u200b") == [None, 0, 0]
    assert over(han_ratio, None, "", "！") == [0.0, 0.0, 0.0]
