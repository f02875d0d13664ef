"""Spans of a text that may be quoted: whole clauses, long enough to say something and short enough to be read."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from pipelines.annotate.rules.clauses import Clause
from schemas.reasoning import Lang

# Characters of a quotation: a language without spaces says in 40 what English says in 110.
SHORTEST = 4
LONGEST = {"zh": 40, "en": 110}

# Inside a clause without punctuation, where a new thought begins or ends.
_INNER = {
    "zh": re.compile(
        r"(?=因为|所以|但是|可是|然后|而且|如果|虽然|后来|现在|最近|有时|每次|于是|我[也就都还又很总真不没]"
        r"|(?<=[\u4e00-\u9fff]{6})我(?!们))|[ \t、]"
    ),
    "en": re.compile(r"\s(?=(?:and|but|because|so|when|if|that|while|who|which|i|i'm)\s)", re.IGNORECASE),
}


# What ties a clause to the one before it, and is better left out where it is quoted alone.
_TIES = re.compile(r"(?:但是|但(?![凡愿])|可是|然后|而且|所以|因为|就是|不过|于是|结果)+")
_LEFT = SHORTEST  # characters that must be left


class Span(NamedTuple):
    """`text[start:end]`."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """The words themselves."""
        return text[self.start : self.end]


def quotation(text: str, parts: Sequence[Clause], around: Span, lang: Lang) -> Span | None:
    """A span of clauses that holds `around` and has SHORTEST to LONGEST characters; None where there is no such span.
    Of an `around` that is longer itself it holds the beginning.

    A clause that is too short is quoted with its neighbour in the sentence; one that is too long is cut where a new
    thought begins, or else at any character. A word that ties it to the clause before (但是, 所以) is left out.
    """
    place = next((n for n, part in enumerate(parts) if part.start <= around.start < part.end), None)
    if place is None:
        return None
    span = Span(parts[place].start, parts[place].end)
    tie = _TIES.match(text, span.start, span.end)
    if tie and span.end - tie.end() >= _LEFT and (around.start >= tie.end() or around.start == span.start):
        span = Span(tie.end(), span.end)
        around = Span(max(around.start, span.start), max(around.end, span.start))
    if len(span.of(text)) > LONGEST[lang]:
        return _cut(text, span, around, lang)
    if len(span.of(text)) < SHORTEST:
        return _with_neighbour(text, parts, place, lang)
    return span


def wider(text: str, parts: Sequence[Clause], span: Span, lang: Lang) -> Span | None:
    """The clause `span` with a neighbour in its sentence; None where that is too long or too far."""
    place = next((n for n, part in enumerate(parts) if part.start <= span.start < part.end), None)
    return None if place is None else _with_neighbour(text, parts, place, lang)


def opening(text: str, span: Span, lang: Lang, shortest: int = SHORTEST) -> Span | None:
    """The beginning of `span`, cut as `quotation` cuts; None where it is too short to be quoted."""
    start, end = span
    while start < end and (text[start].isspace() or text[start] in "，,、"):
        start += 1
    if end - start > LONGEST[lang]:
        borders = [found.start() for found in _INNER[lang].finditer(text, start + 8, start + LONGEST[lang])]
        end = borders[-1] if borders else start + LONGEST[lang]
        if lang == "en" and not borders:
            end = text.rfind(" ", start, end)
    while end > start and (text[end - 1].isspace() or text[end - 1] in "，,、"):
        end -= 1
    return Span(start, end) if end - start >= shortest else None


def _with_neighbour(text: str, parts: Sequence[Clause], place: int, lang: Lang) -> Span | None:
    here = parts[place]
    for other in (*parts[max(0, place - 1) : place], *parts[place + 1 : place + 2]):
        span = Span(min(here.start, other.start), max(here.end, other.end))
        between = text[min(here.end, other.end) : max(here.start, other.start)]
        apart = len(between) > 2 or any(mark in between for mark in '“”「」『』（）()【】"<>\n')
        if not apart and SHORTEST <= len(span.of(text)) <= LONGEST[lang]:
            return span
    return None


def _cut(text: str, span: Span, around: Span, lang: Lang) -> Span:
    borders = [span.start, *(found.end() for found in _INNER[lang].finditer(text, span.start, span.end)), span.end]
    start = max((one for one in borders if one <= around.start), default=span.start)
    end = min((one for one in borders if one >= around.end), default=span.end)
    # As much of what comes before as there is room for: what came of it is rather told before than behind.
    for border in sorted((one for one in borders if one < start), reverse=True):
        if end - border > LONGEST[lang] // 2:
            break
        start = border
    if end - start > LONGEST[lang]:
        start = max(start, min(around.start, around.end - LONGEST[lang] + 4))
        end = min(end, start + LONGEST[lang])
        if lang == "en":
            start, end = _between_words(text, start, end, around)
    while end > start and (text[end - 1].isspace() or text[end - 1] in "、,，"):
        end -= 1
    return Span(start, end)


def _between_words(text: str, start: int, end: int, around: Span) -> tuple[int, int]:
    if start and text[start - 1].isalnum():
        start = next((n + 1 for n in range(start, max(around.start, end)) if text[n].isspace()), start)
    if end < len(text) and text[end].isalnum():
        least = around.end if around.end < end else start  # what is too long itself is cut as well
        end = next((n for n in range(end - 1, least, -1) if text[n].isspace()), end)
    return start, end
