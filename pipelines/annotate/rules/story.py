"""What a chain tells of one text: the feelings that count, the cause, the belief and the question to quote."""

from dataclasses import dataclass
from functools import cache, lru_cache

from pipelines.annotate.rules.beliefs import Belief
from pipelines.annotate.rules.causes import Cause
from pipelines.annotate.rules.danger import dangers
from pipelines.annotate.rules.feelings import Feeling
from pipelines.annotate.rules.intents import Intent, asks_nothing, main_intent
from pipelines.annotate.rules.lexicon import Finder, markers
from pipelines.annotate.rules.quotes import LONGEST, SHORTEST, Span, wider
from pipelines.annotate.rules.reading import Reading, read
from pipelines.annotate.rules.topics import main_topic
from schemas.labels import SENTIMENT_OF
from schemas.reasoning import Lang

# A connective alone, with no feeling beside it, is no cause worth naming (see causes._WEIGHTS).
_SURE = 5
_MOST_FEELINGS, _MOST_PERSONS = 3, 3


@dataclass(frozen=True, slots=True)
class Story:
    """The parts of a reading that a chain uses; every string is a piece of the text."""

    reading: Reading
    emotion: str  # the one that prevails, by its English name; confusion or calm where no word names one
    intensity: int  # 1–5; 1 where no word names a feeling
    words: tuple[str, ...]  # the words of the feelings, the strongest emotion first, one per emotion
    anchor: str  # the clause that shows the first of them, or what the text is about
    cause: str | None
    cause_kind: str | None
    belief: str | None
    belief_kind: str | None
    intent: Intent
    question: str | None
    others: tuple[str, str] | None  # a feeling that is somebody else's, and whose
    denied: str | None  # a feeling that the writer says they do not have
    persons: tuple[str, ...]
    topic: str
    dangers: tuple[str, ...]

    @property
    def tone(self) -> str:
        """The emotion to speak to: where none is named, calm, whatever the question may hide."""
        return self.emotion if self.words else "calm"


@lru_cache(maxsize=4096)
def story(text: str, lang: Lang | None = None, *, titled: bool = False) -> Story:
    """The story of a post (`titled`: its first line is a title) or of one turn of a dialogue."""
    reading = read(text, lang, titled=titled)
    ranked = reading.ranked()
    shown = [one for one in ranked if SENTIMENT_OF[one.emotion] != "positive" and one.emotion != "calm"] or ranked
    intent, question = main_intent(reading.questions)
    asked = question.span.of(text) if question else None
    first = _best_shown(reading, shown[0].emotion) if shown else None
    anchor = _anchor(reading, first, question.span if question else None)
    cause = next(
        (one for one in reading.causes if one.weight >= _SURE and one.span.of(text) not in (anchor, asked)), None
    )
    belief = _belief(reading, {anchor, asked, cause.span.of(text) if cause else None})
    title, newline, _ = text.partition("\n")
    words = [reading.word(first)] if first else []
    words += [reading.word(one.feeling) for one in shown[1:_MOST_FEELINGS]]
    return Story(
        reading,
        emotion=first.emotion if first else ("confusion" if question else "calm"),
        intensity=shown[0].intensity if shown else 1,
        words=tuple(dict.fromkeys(words)),
        anchor=anchor,
        cause=_of(cause, text),
        cause_kind=cause.kind if cause else None,
        belief=_of(belief, text),
        belief_kind=belief.kind if belief else None,
        intent=intent,
        question=asked,
        others=_others(reading),
        denied=_denied(reading),
        persons=_persons(reading),
        topic=main_topic(title if titled and newline else "", text)[0] or "none",
        dangers=dangers(text),
    )


def _of(part: Cause | Belief | None, text: str) -> str | None:
    return part.span.of(text) if part else None


def _best_shown(reading: Reading, emotion: str) -> Feeling:
    """The feeling to quote: rather from the story than from the title, which says what is asked; then the strongest."""
    felt = [one for one in reading.own if one.emotion == emotion]
    return max(felt, key=lambda one: (reading.clauses[one.clause].line > 0, one.intensity, -one.start))


def _anchor(reading: Reading, first: Feeling | None, asked: Span | None) -> str:
    """What shows the first feeling; without one, the clause that says most, rather no question."""
    if first and (span := reading.quoted(first.start, first.end)):
        alone = span == (first.start, first.end)
        more = wider(reading.text, reading.clauses, span, reading.lang) if alone else None
        return (more or span).of(reading.text)
    lengths = range(SHORTEST, LONGEST[reading.lang] + 1)
    whole = [Span(one.start, one.end) for one in reading.clauses if one.end - one.start in lengths]
    told = [span for span in whole if span != asked and not _asks(reading, span) and not _greets(reading, span)]
    if told:
        return max(told, key=lambda span: (span.end - span.start, -span.start)).of(reading.text)
    if asked:
        return asked.of(reading.text)
    cut = [span for one in reading.clauses if (span := reading.quoted(one.start, one.end))]
    short = [Span(one.start, one.end) for one in reading.clauses if one.end - one.start < SHORTEST]
    return next((span.of(reading.text) for span in (*cut, *short)), "…")


def _asks(reading: Reading, span: Span) -> bool:
    return any(one.span == span for one in reading.questions)


def _greets(reading: Reading, span: Span) -> bool:
    """How are you: a question that asks for nothing."""
    return asks_nothing(span.of(reading.text), reading.lang)


def _belief(reading: Reading, taken: set[str | None]) -> Belief | None:
    """The most telling belief in a clause that is not quoted already."""
    return next((one for one in reading.beliefs if one.span.of(reading.text) not in taken), None)


def _denied(reading: Reading) -> str | None:
    """An unpleasant feeling that the writer says they do not have, and nowhere that they have."""
    affirmed = {one.emotion for one in reading.own}
    for one in reading.feelings:
        if one.own and one.denied and one.emotion not in affirmed and SENTIMENT_OF[one.emotion] == "negative":
            return reading.word(one)
    return None


def _others(reading: Reading) -> tuple[str, str] | None:
    """A feeling of somebody else's that is named together with them; not 你, who may be anyone."""
    for one in reading.feelings:
        if not one.own and one.holder and not one.denied and one.holder not in ("你", "您", "你们", "you", "your"):
            return reading.word(one), one.holder
    return None


def _persons(reading: Reading) -> tuple[str, ...]:
    """Whom the text speaks of, by kinship or role, in order; in Chinese alone."""
    if reading.lang == "en":
        return ()
    hits = _people().hits(reading.text)
    return tuple(dict.fromkeys(reading.text[hit.start : hit.end] for hit in hits))[:_MOST_PERSONS]


@cache
def _people() -> Finder:
    return Finder([("person", markers("zh")["holders"]["people"])], "zh")
