"""Beliefs that the wording of a text shows: all-embracing words, blame, what others are thought to think.

A wording is no diagnosis: who writes 总是 may be right. So what is made of it says "reads as if", never "is".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from pipelines.annotate.rules.clauses import Clause
from pipelines.annotate.rules.lexicon import any_of, markers
from pipelines.annotate.rules.quotes import Span, quotation
from schemas.reasoning import Lang


@dataclass(frozen=True, slots=True)
class Belief:
    """One belief, `text[span]`, of a kind out of `markers.<lang>.toml`."""

    kind: str
    span: Span


def beliefs(text: str, parts: Sequence[Clause], lang: Lang) -> list[Belief]:
    """The first belief of each kind in `text`, the most telling kind first, no clause twice."""
    found: list[Belief] = []
    telling = [part for part in parts if not part.spoken and _any_kind(lang).search(text, part.start, part.end)]
    taken: set[Span] = set()
    for kind, pattern in _kinds(lang):
        for part in telling:
            if not (match := pattern.search(text, part.start, part.end)):
                continue
            span = quotation(text, parts, Span(match.start(), match.end()), lang)
            if span and span not in taken:
                taken.add(span)
                found.append(Belief(kind, span))
                break
    return found


@cache
def _kinds(lang: Lang) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Kinds and patterns, in the order of the lexicon: from blame for oneself to mere words of degree."""
    return tuple((kind, any_of(table["patterns"], lang)) for kind, table in markers(lang)["beliefs"].items())


@cache
def _any_kind(lang: Lang) -> re.Pattern[str]:
    return any_of((pattern for table in markers(lang)["beliefs"].values() for pattern in table["patterns"]), lang)
