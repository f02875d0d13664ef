"""People whom a Chinese text names: of its story and of the writer's own circle, or of no one's."""

import re
from bisect import bisect_right
from functools import cache, cached_property

from pipelines.annotate.rules.clauses import Clause, clauses
from pipelines.text.finder import Finder, any_of, markers, shaped, worded

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
    told = _Subjects(text)
    for kin in worded("zh", "holders", "kin").finditer(text):
        before = text[max(0, kin.start() - _REACH) : kin.start()]
        has = shaped("zh", "holders", "has").search(before)
        carried = has is not None and told.another_before(kin.start() - len(has[0]))
        if carried or shaped("zh", "holders", "anothers").search(before):
            found.add(kin.start())
    return frozenset(found)


_SUBJECT = re.compile("我|[他她]")


class _Subjects:
    """Whom the clauses of a text are about: each is looked at once, however many places are asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _parts(self) -> list[Clause]:
        return clauses(self._text, titled=False)

    @cached_property
    def _starts(self) -> list[int]:
        return [part.start for part in self._parts]

    @cached_property
    def _named(self) -> list[re.Match[str] | None]:
        """The first subject of each clause."""
        return [_SUBJECT.search(self._text, part.start, part.end) for part in self._parts]

    @cached_property
    def _before(self) -> list[re.Match[str] | None]:
        """The first subject of the nearest clause before each, in its sentence, that has one."""
        found: list[re.Match[str] | None] = []
        for place, part in enumerate(self._parts):
            goes_on = place > 0 and self._parts[place - 1].sentence == part.sentence
            found.append((self._named[place - 1] or found[-1]) if goes_on else None)
        return found

    def another_before(self, place: int) -> bool:
        """Whether the clauses of a sentence before `place` are last about 他 or 她, and its own names no subject."""
        here = bisect_right(self._starts, place) - 1
        if here < 0:
            return False
        named = self._named[here]
        last = named if named and named.end() <= place else self._before[here]
        return last is not None and last[0] != "我"


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
