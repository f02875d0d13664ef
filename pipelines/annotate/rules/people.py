"""People whom a Chinese text names: of its story and of the writer's own circle, or of no one's."""

import re
from functools import cache

from pipelines.annotate.rules.clauses import clauses
from pipelines.annotate.rules.lexicon import Finder, any_of, markers, shaped, worded

# How far before a word of kin whose it is may stand.
_REACH = 6


def people(text: str) -> tuple[str, ...]:
    """Whom `text` speaks of, by kinship or role, in order: none who is only asked, of a film, or another's kin."""
    out = {match.start("who") for pattern in _nobody() for match in pattern.finditer(text)} | another_s(text)
    played = _played(text)
    found = dict.fromkeys(
        text[hit.start : hit.end]
        for hit in _people().hits(text)
        if hit.start not in out and not any(start <= hit.start < end for start, end in played)
    )
    return tuple(found)


def another_s(text: str) -> frozenset[int]:
    """Where a word of kin stands that is of somebody else's family: 他女儿; 她说她离异，带个女儿.

    None where the text speaks of a marriage: his daughter may be theirs.
    """
    if worded("zh", "circles", "spouse").search(text):
        return frozenset()
    found = set()
    for kin in worded("zh", "holders", "kin").finditer(text):
        before = text[max(0, kin.start() - _REACH) : kin.start()]
        has = shaped("zh", "holders", "has").search(before)
        carried = has is not None and _carried(text, kin.start() - len(has[0]))
        if carried or shaped("zh", "holders", "anothers").search(before):
            found.add(kin.start())
    return frozenset(found)


_SUBJECT = re.compile("我|[他她]")


def _carried(text: str, place: int) -> bool:
    """Whether the clauses of a sentence before `place` are last about 他 or 她, and `place` names no subject."""
    parts = [one for one in clauses(text, titled=False) if one.start <= place]
    for part in reversed(parts):
        if part.sentence != parts[-1].sentence:
            break
        if found := _SUBJECT.search(text, part.start, min(part.end, place)):
            return found[0] != "我"
    return False


def _played(text: str) -> list[tuple[int, int]]:
    """The sentences that tell a film or a dream."""
    if not shaped("zh", "holders", "played").search(text):
        return []
    spans: dict[int, tuple[int, int]] = {}
    told: set[int] = set()
    for part in clauses(text, titled=False):
        start, _ = spans.get(part.sentence, (part.start, part.end))
        spans[part.sentence] = (start, part.end)
        if shaped("zh", "holders", "played").search(text, part.start, part.end):
            told.add(part.sentence)
    lived = shaped("zh", "holders", "lived")
    return [spans[sentence] for sentence in sorted(told) if not lived.search(text, *spans[sentence])]


@cache
def _nobody() -> tuple[re.Pattern[str], ...]:
    return tuple(any_of([pattern], "zh") for pattern in markers("zh")["holders"]["nobody"])


@cache
def _people() -> Finder:
    return Finder([("person", markers("zh")["holders"]["people"])], "zh")
