import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.pii import placeholders
from schemas.labels import PII_KINDS


@given(st.sampled_from(PII_KINDS), st.integers(1, 10_000))
def test_a_placeholder_says_its_kind_and_number(kind, number):
    written = placeholders.placeholder(kind, number)
    assert re.fullmatch(placeholders.PATTERN, written)
    name, n = re.fullmatch(placeholders.NAMED, written).groups()
    assert name == placeholders.NAMES[kind]
    assert int(n or 1) == number


def test_the_first_carries_no_number():
    assert placeholders.placeholder("phone") == "[电话]"
    assert placeholders.placeholder("phone", 2) == "[电话2]"
    assert re.fullmatch(placeholders.PATTERN, placeholders.EMOTICON)


@pytest.mark.parametrize(
    "text", ["[电话1]", "[电话0]", "[电话02]", "[泪]", "【电话】", "[ 电话 ]", "[表情2]", "[]", "电话"]
)
def test_nothing_else_is_one(text):
    assert not re.search(placeholders.PATTERN, text)


def test_an_unknown_kind_is_an_error():
    with pytest.raises(KeyError):
        placeholders.placeholder("shoe_size")
