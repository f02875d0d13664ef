"""The words of a text to quote: the clause that shows what is felt, or else the one that tells most.

None of danger or of death: whoever replies to those goes to safety, or stays with who grieves.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pipelines.annotate.rules.contexts import tells_on
from pipelines.annotate.rules.feelings import Feeling
from pipelines.annotate.rules.intents import asks_nothing
from pipelines.annotate.rules.quotes import LONGEST, SHORTEST, Span
from pipelines.annotate.rules.reading import Reading

# A question or a cause of so many characters says by itself what is the matter.
_IN_FULL = {"zh": 9, "en": 25}


class Anchor(NamedTuple):
    """Words of a text, and whether they show the feeling that was looked for; "" where all speak of danger."""

    text: str
    shown: bool


def anchor(reading: Reading, first: Feeling | None, asked: Span | None) -> Anchor:
    """What shows the feeling `first`; without one, the clause that says most, rather no question, at last `asked`."""
    span = _showing(reading, first) if first else None
    if span:
        return Anchor(span.of(reading.text), True)
    span = next(_telling(reading, asked), asked)
    return Anchor(span.of(reading.text) if span else _any(reading), False)


def best_shown(reading: Reading, emotion: str) -> Feeling | None:
    """The feeling to quote: no word of danger, rather out of a clause that may be quoted, and rather from the story
    than from the title, which says what is asked; then the strongest."""
    felt = [one for one in reading.own if one.emotion == emotion and not one.grave]
    if len(felt) < 2:
        return felt[0] if felt else None

    def order(one: Feeling) -> tuple[bool, bool, bool, int, int]:
        told = reading.clauses[one.clause]
        quotable = one.clause not in reading.grave
        return quotable, one.clause not in reading.diagnosis, told.line > 0, one.intensity, -one.start

    return max(felt, key=order)


def in_full(reading: Reading, said: str) -> str:
    """`said` with the rest of its clause, or with the clause beside it, where it is too short to say what is the matter
    (a job situation; 我该怎么办)."""
    start = reading.text.find(said)
    span = Span(start, start + len(said))
    for more in (reading.quoted, reading.widened):
        longer = more(*span) if len(span.of(reading.text)) < _IN_FULL[reading.lang] else None
        if longer and said in longer.of(reading.text) and not reading.heavy(longer):
            span = longer
    return span.of(reading.text)


def _showing(reading: Reading, feeling: Feeling) -> Span | None:
    """A span around a feeling; with its neighbour, where the word would stand alone."""
    if feeling.clause in reading.grave or not (span := reading.quoted(feeling.start, feeling.end)):
        return None
    alone = span == (feeling.start, feeling.end)
    more = reading.widened(*span) if alone else None
    return next((one for one in (more, span) if one and not reading.heavy(one)), None)


def _telling(reading: Reading, asked: Span | None) -> Iterator[Span]:
    """The clauses that tell something and ask nothing, the longest first; after all others those that tell on what
    somebody said, and those of a diagnosis."""
    lengths = range(SHORTEST, LONGEST[reading.lang] + 1)
    asking = {one.span for one in reading.questions} | {asked}
    whole = [
        (
            place in reading.diagnosis,
            tells_on(reading.plain, one, reading.lang),
            one.start - one.end,
            Span(one.start, one.end),
        )
        for place, one in enumerate(reading.clauses)
        if one.end - one.start in lengths
    ]
    for *_, span in sorted(whole):
        if span not in asking and not asks_nothing(span.of(reading.text), reading.lang) and not reading.heavy(span):
            yield span


def _any(reading: Reading) -> str:
    """A piece of a clause that is too long, or one that is short: what is there."""
    cut = [span for one in reading.clauses if (span := reading.quoted(one.start, one.end))]
    short = [Span(one.start, one.end) for one in reading.clauses if one.end - one.start < SHORTEST]
    fitting = (span.of(reading.text) for span in (*cut, *short) if not reading.heavy(span))
    return next(fitting, "" if reading.grave else "…")
