import re

from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.pii import placeholders
from schemas.labels import PII_KINDS


@given(st.sampled_from(PII_KINDS), st.integers(1, 10_000))
def test_a_placeholder_says_its_kind_and_number(kind, number):
    written = f"[{placeholders.NAMES[kind]}{number if number > 1 else ''}]"
    assert re.fullmatch(placeholders.PATTERN, written)
    name, n = re.fullmatch(placeholders.NAMED, written).groups()
    assert name == placeholders.NAMES[kind]
    assert int(n or 1) == number


def test_nothing_else_is_one():
    assert re.fullmatch(placeholders.PATTERN, placeholders.EMOTICON)
    for text in ("[电话1]", "[电话0]", "[电话02]", "[泪]", "【电话】", "[ 电话 ]", "[表情2]", "[]", "电话"):
        assert not re.search(placeholders.PATTERN, text), text
