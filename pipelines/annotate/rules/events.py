"""What a writer tells right before a feeling: no proven cause, and never said to be one. In Chinese alone."""

from collections.abc import Iterator

from pipelines.annotate.rules.clauses import Clause
from pipelines.annotate.rules.feelings import Feeling
from pipelines.annotate.rules.quotes import LONGEST, Span
from pipelines.annotate.rules.reading import Reading
from pipelines.text.finder import shaped

# Fewer characters tell no event.
_SHORTEST = 6


def event_before(reading: Reading, feeling: Feeling) -> Span | None:
    """The clause nearest before `feeling` that tells something that happened, in its sentence or in the one before.

    None where there is none: a clause that is asked, quoted from a speech, supposed, thought, of danger or death, or
    that names a feeling of the writer's tells no event.
    """
    if reading.lang != "zh" or not reading.clauses[feeling.clause].line:
        return None
    felt = {one.clause for one in reading.own} | reading.grave | reading.diagnosis
    asked = [one.span for one in reading.questions]
    for place, part in _before(reading, feeling):
        in_question = any(span.start < part.end and part.start < span.end for span in asked)
        if place not in felt and not in_question and _happened(reading.plain, part):
            return Span(part.start, part.end)
    return None


def _before(reading: Reading, feeling: Feeling) -> Iterator[tuple[int, Clause]]:
    """The clauses before `feeling`, the nearest first, as far as the sentence before its own; none of a title."""
    here = reading.clauses[feeling.clause]
    sentences = {here.sentence}
    for place in range(feeling.clause - 1, -1, -1):
        part = reading.clauses[place]
        if len(sentences) == 2 and part.sentence not in sentences:
            return
        sentences.add(part.sentence)
        if part.line:
            yield place, part


def _happened(text: str, part: Clause) -> bool:
    if part.spoken or part.asked or not _SHORTEST <= part.end - part.start <= LONGEST["zh"]:
        return False
    said = text[part.start : part.end]
    return bool(shaped("zh", "events", "happened").search(said)) and not shaped("zh", "events", "thought").search(said)
