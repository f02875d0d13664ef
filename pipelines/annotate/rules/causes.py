"""What a text says a feeling comes from, by its connectives: 因为…, …让我…, 每次…就…; quoted as it stands."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from pipelines.annotate.rules.clauses import Clause
from pipelines.annotate.rules.feelings import Feeling, whose
from pipelines.annotate.rules.lexicon import alternatives, any_of, markers
from pipelines.annotate.rules.quotes import SHORTEST, Span, opening
from pipelines.clean.words import spelled
from schemas.labels import SENTIMENT_OF
from schemas.reasoning import Lang

# How plainly each kind says that it is a cause.
_WEIGHTS = {"because": 6, "makes": 6, "whenever": 5, "since": 4, "feared": 4, "after": 3, "suffered": 2}
# A cause told in the sentence of a feeling of the writer's is likelier the cause of that feeling.
_BESIDE_A_FEELING = 3
# Behind 因为 two characters may name a cause: 因为作息.
_NAMED = 2


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause, `text[span]`, and the words that make it one."""

    kind: str  # a key of _WEIGHTS
    span: Span
    connective: str
    beside_feeling: bool

    @property
    def weight(self) -> int:
        """How sure it is."""
        return _WEIGHTS[self.kind] + _BESIDE_A_FEELING * self.beside_feeling


def causes(text: str, parts: Sequence[Clause], felt: Sequence[Feeling], lang: Lang) -> list[Cause]:
    """The causes in `text`, the surest first."""
    own = [one for one in felt if one.own and not one.denied]
    sentences = {parts[one.clause].sentence for one in own}
    found = []
    for place, part in enumerate(parts):
        if part.spoken or not _any_connective(lang).search(text, part.start, part.end):
            continue
        for kind, span, connective in _told(text, parts, place, own, lang):
            # The surest kind that a clause shows; a connective with nothing behind it shows none.
            if (cut := opening(text, span, lang, shortest=_NAMED if kind == "because" else SHORTEST)) and not _asks_for(
                lang
            ).match(text, cut.start):
                found.append(Cause(kind, cut, connective, part.sentence in sentences))
                break
    return sorted(found, key=lambda cause: (-cause.weight, cause.span.start))


def _told(
    text: str, parts: Sequence[Clause], place: int, own: Sequence[Feeling], lang: Lang
) -> list[tuple[str, Span, str]]:
    """Kind, place and connective of what one clause tells; the place may be in the clause before or behind it."""
    part = parts[place]
    after = parts[place + 1] if place + 1 < len(parts) and parts[place + 1].sentence == part.sentence else None
    here = [one for one in own if one.clause == place or (after and one.clause == place + 1)]
    feels = any(SENTIMENT_OF[one.emotion] != "positive" for one in here)
    moved = any(parts[one.clause].sentence == part.sentence for one in own)
    told = []
    if (found := _search("because", text, part, lang)) or (found := _search("since", text, part, lang)):
        kind = "because" if _search("because", text, part, lang) else "since"
        behind = Span(found.end(), part.end)
        if after and _pointing(lang).fullmatch(behind.of(text)):
            behind = Span(after.start, after.end)
        elif turn := _connective("results", lang).search(text, behind.start + _NAMED, behind.end):
            behind = Span(behind.start, turn.start())
        told.append((kind, behind, found[0]))
    if feels and (found := _search("makes", text, part, lang)) and not _attributive(text, here, found.end()):
        before = Span(part.start, found.start())
        if _pointing(lang).fullmatch(before.of(text)) and place:
            before = Span(parts[place - 1].start, parts[place - 1].end)
        told.append(("makes", before, found[0]))
    if feels and not part.asked and (found := _search("whenever", text, part, lang)):
        turn = _connective("turns", lang).search(text, min(found.end() + 3, part.end), part.end)
        told.append(("whenever", Span(found.start(), turn.start() if turn else part.end), found[0]))
    if (found := _search("feared", text, part, lang)) and any(one.start <= found.start() < one.end for one in own):
        told.append(("feared", Span(found.end(), part.end), found[0]))
    if moved and (found := _after(lang).search(text, part.start, part.end)) and found.end() == part.end:
        told.append(("after", Span(part.start, part.end), found[0]))
    if (
        not part.asked
        and (found := _suffered(lang).search(text, part.start, part.end))
        and whose(text, part, found.start(), lang)[0]
    ):
        told.append(("suffered", Span(part.start, part.end), found[0]))
    return told


def _attributive(text: str, felt: Sequence[Feeling], since: int) -> bool:
    """让我震惊的事: what the feeling is about stands behind it."""
    return any(one.start >= since and text.startswith("的", one.end) for one in felt[:1])


def _search(kind: str, text: str, part: Clause, lang: Lang) -> re.Match[str] | None:
    return _connective(kind, lang).search(text, part.start, part.end)


@cache
def _any_connective(lang: Lang) -> re.Pattern[str]:
    table = markers(lang)["causes"]
    kinds = [kind for kind in _WEIGHTS if kind != "suffered"]
    return any_of([table["suffered"], *(alternatives(spelled(table[kind]), lang) for kind in kinds)], lang)


@cache
def _connective(kind: str, lang: Lang) -> re.Pattern[str]:
    words = alternatives(spelled(markers(lang)["causes"][kind]), lang)
    return re.compile(words, re.IGNORECASE if lang == "en" else 0)


@cache
def _after(lang: Lang) -> re.Pattern[str]:
    words = alternatives(spelled(markers(lang)["causes"]["after"]), lang)
    return re.compile(rf"{words}(?!\w)", re.IGNORECASE if lang == "en" else 0)


@cache
def _suffered(lang: Lang) -> re.Pattern[str]:
    return re.compile(markers(lang)["causes"]["suffered"], re.IGNORECASE if lang == "en" else 0)


@cache
def _asks_for(lang: Lang) -> re.Pattern[str]:
    return _connective("asks_for", lang)


@cache
def _pointing(lang: Lang) -> re.Pattern[str]:
    words = alternatives(spelled(markers(lang)["causes"]["pointing"]), lang)
    return re.compile(rf"(?:{words}\s*)*", re.IGNORECASE if lang == "en" else 0)
