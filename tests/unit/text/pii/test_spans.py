import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.pii.spans import matches

TEXTS = st.lists(st.text("ab1微信 ，😭é", max_size=20) | st.none(), max_size=10)


@pytest.mark.parametrize(
    ("hit", "cue", "tail"), [("[a-b]+", "", ""), ("[a-b]+", "微信?", ""), ("微|😭", "", "[，é]"), ("1", "a*", "b?")]
)
@given(TEXTS)
def test_matches_are_those_of_finditer(hit, cue, tail, texts):
    found = matches(pl.Series(texts, dtype=pl.String), hit, cue=cue, tail=tail)
    expected = [
        (row, len(text[: match.start("hit")].encode()), len(text[: match.end("hit")].encode()), match["hit"])
        for row, text in enumerate(texts)
        if text
        for match in re.finditer(f"({cue})(?P<hit>{hit})({tail})", text)
    ]
    assert found.select("row", "start", "end", "hit").rows() == expected


@given(TEXTS)
def test_what_stands_around_a_match_stands_around_it(texts):
    for row, start, end, _, hit, before, after in matches(pl.Series(texts, dtype=pl.String), "[a-b]+").iter_rows():
        data = texts[row].encode()
        assert data[:start].decode().endswith(before)
        assert data[start:end].decode() == hit
        assert data[end:].decode().startswith(after)
