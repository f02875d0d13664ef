"""Beliefs that the wording of a text shows: all-embracing words, blame, what others are thought to think.

A wording is no diagnosis: who writes 总是 may be right. So what is made of it says "reads as if", never "is".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from pipelines.annotate.rules.clauses import Clause, holding
from pipelines.annotate.rules.feelings import whose
from pipelines.annotate.rules.quotes import Span, quotation
from pipelines.text.finder import any_of, markers, shaped
from schemas.reasoning import Lang


@dataclass(frozen=True, slots=True)
class Belief:
    """One belief, `text[span]`, of a kind out of `markers.<lang>.toml`."""

    kind: str
    span: Span


def beliefs(text: str, parts: Sequence[Clause], lang: Lang) -> list[Belief]:
    """The first belief of each kind in `text`, the most telling kind first, no clause twice."""
    found: list[Belief] = []
    telling = [part for place in holding(_any_kind(lang), text, parts) if not (part := parts[place]).spoken]
    taken: set[Span] = set()
    for kind, pattern in _kinds(lang):
        for part in telling:
            match = pattern.search(text, part.start, part.end)
            if match is None or not _held(text, part, match, kind, lang):
                continue
            span = quotation(text, parts, Span(match.start(), match.end()), lang)
            if span and span not in taken:
                taken.add(span)
                found.append(Belief(kind, span))
                break
    return found


# Kinds that are the writer's own view, or none of theirs.
_OWN = ("self_blame", "labelling", "mind_reading", "should")


def _held(text: str, part: Clause, match: re.Match[str], kind: str, lang: Lang) -> bool:
    """Whether the writer holds it: neither denies nor supposes it, nor tells what somebody else thinks."""
    before = text[part.start : match.start()]
    if shaped(lang, "causes", "supposed").search(before) or shaped(lang, "causes", "denied").search(before):
        return False
    if kind == "always" and lang == "zh" and not _judges(text, part):
        return False
    return kind not in _OWN or whose(text, part, match.start(), lang)[0]


def _judges(text: str, part: Clause) -> bool:
    """Whether a Chinese clause judges the writer, others or the world; not 谁都没说话, nor 是所有人都这样吗."""
    if shaped("zh", "judging", "asks").search(text[part.start : part.end]):  # it asks where the clause begins
        return False
    return bool(shaped("zh", "judging").search(text, part.start, part.end))


@cache
def _kinds(lang: Lang) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Kinds and patterns, in the order of the lexicon: from blame for oneself to mere words of degree."""
    return tuple((kind, any_of(table["patterns"], lang)) for kind, table in markers(lang)["beliefs"].items())


@cache
def _any_kind(lang: Lang) -> re.Pattern[str]:
    """What a clause must hold to show any; `holding` knows no end of a clause."""
    tables = markers(lang)["beliefs"].values()
    return any_of((pattern.removesuffix("$") for table in tables for pattern in table["patterns"]), lang)
