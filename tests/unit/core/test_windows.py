"""Windows of characters and words; as numbers, against the polynomial written out."""

from hypothesis import given
from hypothesis import strategies as st

from pipelines.core.overlap import hashes, points, windows

BASE = 0x9E3779B97F4A7C15


@given(st.text(alphabet="ab心\U0001f642\ud800", max_size=30), st.integers(1, 9), st.integers(1, 4))
def test_every_window_has_the_number_of_its_characters(text, width, apart):
    written_out = [
        sum(ord(one) * BASE ** (width - 1 - place) for place, one in enumerate(text[at : at + width])) % 2**64
        for at in range(0, len(text) - width + 1, apart)
    ]
    assert hashes(points(text), width, BASE, apart).tolist() == written_out


def test_windows_overlap_and_are_of_one_width():
    assert list(windows("一二三四", 3)) == ["一二三", "二三四"]
    assert list(windows(("a", "b", "c"), 2)) == [("a", "b"), ("b", "c")]
    assert list(windows("一二", 3)) == list(windows("", 1)) == []
    assert hashes(points("ab"), 3, BASE).tolist() == []
