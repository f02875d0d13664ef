"""Spans that may be quoted: whole clauses, or as much of one as may be read."""

import pytest

from pipelines.annotate.rules.clauses import clauses
from pipelines.annotate.rules.quotes import LONGEST, Span, quotation


def quoted(text, around, lang="zh"):
    start = text.index(around)
    span = quotation(text, clauses(text, titled=False), Span(start, start + len(around)), lang)
    assert span is not None
    return span.of(text)


@pytest.mark.parametrize("before", ["", "那天下午在学校门口等了很久的时候"])
def test_what_is_quoted_of_a_long_clause_holds_what_it_is_quoted_for(before):
    text = before + "一个人" + "慢慢走在回去的路上" * 6
    said = quoted(text, "一个人")
    assert "一个人" in said
    assert len(said) <= LONGEST["zh"]


def test_of_what_is_too_long_itself_the_beginning_is_kept():
    text = "一个人" + "慢慢走在回去的路上" * 6
    said = quoted(text, text)
    assert said.startswith("一个人")
    assert len(said) <= LONGEST["zh"]
    english = "nobody " + "walks along here " * 12
    said = quoted(english, english.strip(), "en")
    assert said.startswith("nobody walks")
    assert len(said) <= LONGEST["en"]
    assert said.split()[-1] in english.split()
