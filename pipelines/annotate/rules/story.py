"""What a chain tells of one text: the feelings that count, the cause, the belief and the question to quote.

A clause that speaks of danger or of death (`Reading.grave`) is quoted neither as a feeling nor as a cause, belief or
question: whoever replies goes to safety, or stays with who grieves.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

from pipelines.annotate.rules.anchors import Anchor, anchor, best_shown
from pipelines.annotate.rules.beliefs import Belief
from pipelines.annotate.rules.causes import Cause
from pipelines.annotate.rules.danger import dangers
from pipelines.annotate.rules.events import event_before
from pipelines.annotate.rules.feelings import Feeling, whose
from pipelines.annotate.rules.intents import Intent, Question, asks_of_another, main_intent
from pipelines.annotate.rules.people import people
from pipelines.annotate.rules.quotes import LONGEST, Span
from pipelines.annotate.rules.reading import Prevailing, Reading, read
from pipelines.annotate.rules.topics import subject
from pipelines.text.finder import shaped
from schemas.labels import SENTIMENT_OF
from schemas.reasoning import Lang

# A connective alone, with no feeling beside it, is no cause worth naming (see causes._WEIGHTS).
_SURE = 5
_LISTENERS = ("你", "您", "你们", "you", "your")
_MOST_FEELINGS, _MOST_PERSONS = 3, 3
# A text of so many characters has no room for what is told in passing.
SHORT = {"zh": 100, "en": 300}


@dataclass(frozen=True, eq=False)
class Story:
    """The parts of a reading that a chain uses; every string is a piece of the text. Each is made when asked for."""

    reading: Reading
    title: str

    # --- what is felt

    @property
    def emotion(self) -> str:
        """The one that prevails, by its English name; confusion or calm where no word names one."""
        if self._ranked:
            return self._ranked[0].emotion
        return "confusion" if self.question else "calm"

    @property
    def intensity(self) -> int:
        """1–5; 1 where no word names a feeling."""
        return self._ranked[0].intensity if self._ranked else 1

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the feelings, the strongest emotion first, one per emotion."""
        return tuple(dict.fromkeys(self.reading.word(one) for one in self._named[:_MOST_FEELINGS]))

    @property
    def weighs(self) -> bool:
        """Whether a word names a feeling, and no pleasant one."""
        return bool(self.words) and SENTIMENT_OF[self.emotion] != "positive" and self.emotion != "calm"

    @property
    def hurts(self) -> bool:
        """Whether a word names an unpleasant feeling."""
        return bool(self.words) and SENTIMENT_OF[self.emotion] == "negative"

    @property
    def gladdens(self) -> bool:
        """Whether a word names a pleasant feeling, and none another."""
        return bool(self.words) and SENTIMENT_OF[self.emotion] == "positive"

    @property
    def tone(self) -> str:
        """The emotion to speak to: calm where none is named, or where somebody asks and names a pleasant one alone."""
        return self.emotion if self.words and not (self.gladdens and self.question) else "calm"

    @property
    def others(self) -> tuple[str, str] | None:
        """A feeling of somebody else's that is named together with them; not 你, who may be anyone."""
        for one in self.reading.feelings:
            theirs = not one.own and not one.denied and not one.grave and one.emotion != "gratitude"
            if theirs and one.holder and one.holder not in _LISTENERS:
                return self.reading.word(one), one.holder
        return None

    @property
    def denied(self) -> str | None:
        """An unpleasant feeling that the writer says they do not have, and nowhere that they have."""
        affirmed = {one.emotion for one in self.reading.own}
        for one in self.reading.feelings:
            unpleasant = SENTIMENT_OF[one.emotion] == "negative" and not one.grave
            if one.own and one.denied and unpleasant and one.emotion not in affirmed:
                return self.reading.word(one)
        return None

    # --- what is quoted

    @property
    def anchor(self) -> str:
        """The clause that shows the first of the words, or what the text is about; "" where all speak of danger."""
        return self._anchor.text

    @property
    def shown(self) -> bool:
        """Whether the anchor holds the first of the words."""
        return self._anchor.shown

    @property
    def cause(self) -> str | None:
        """What the feeling is said to come from."""
        return self._cause.span.of(self.reading.text) if self._cause else None

    @property
    def cause_kind(self) -> str | None:
        """The kind of its connective."""
        return self._cause.kind if self._cause else None

    @cached_property
    def event(self) -> str | None:
        """What is told right before the first of the feelings that is told of after something: no proven cause."""
        reading = self.reading
        found = (event_before(reading, one) for one in self._named[:_MOST_FEELINGS])
        told = (span.of(reading.text) for span in found if span)
        return next((one for one in told if one not in self.anchor and one != self.belief), None)

    @property
    def belief(self) -> str | None:
        """What the wording shows to be believed."""
        return self._belief.span.of(self.reading.text) if self._belief else None

    @property
    def belief_kind(self) -> str | None:
        """The kind of thinking that it may show."""
        return self._belief.kind if self._belief else None

    @property
    def intent(self) -> Intent:
        """What is asked for; validation where nothing is."""
        return self._asked[0]

    @property
    def question(self) -> str | None:
        """The question that says it best."""
        return self._asked[1].span.of(self.reading.text) if self._asked[1] else None

    @property
    def choosing(self) -> bool:
        """Whether what is asked is which way to go."""
        question = self._asked[1]
        return question is not None and question.choice

    @cached_property
    def titled_event(self) -> str | None:
        """The clause of the title that tells something of the writer's and asks nothing; none of danger or death."""
        reading = self.reading
        asked = [one.span.start for one in reading.questions]
        for part in reading.clauses if self.title and reading.lang == "zh" else ():
            span = Span(part.start, part.end)
            said = span.of(reading.text)
            if part.line or part.start in asked or reading.heavy(span) or len(said) not in range(5, LONGEST["zh"] + 1):
                continue
            told = shaped("zh", "events", "titled").search(said) and not shaped("zh", "events", "untold").search(said)
            if told and said not in self.anchor:
                return said
        return None

    @cached_property
    def others_mind(self) -> bool:
        """Whether what is asked is what goes on in somebody else."""
        reading, question = self.reading, self._asked[1]
        sentence = reading.sentence(question.span).of(reading.text) if question else ""
        return asks_of_another(sentence, reading.lang)

    @property
    def focus(self) -> str:
        """What the text puts first: all of it where it is short, else its title and what is quoted of it."""
        if len(self.reading.text) <= SHORT[self.reading.lang]:
            return self.reading.text
        return "\n".join(filter(None, (self.title, self.question, self.anchor, self.cause, self.belief)))

    # --- what it is about

    @property
    def persons(self) -> tuple[str, ...]:
        """Whom the text speaks of, by kinship or role, in order; in Chinese alone."""
        if self.reading.lang == "en":
            return ()
        return people(self.reading.text)[:_MOST_PERSONS]

    @property
    def topic(self) -> str:
        """The main topic, or none."""
        return subject(self.title, self.reading.text).topic or "none"

    @property
    def about(self) -> str:
        """The main topic where enough is said of it to name it to a reader, or none."""
        found = subject(self.title, self.reading.text)
        return found.topic if found.topic and found.enough else "none"

    @property
    def dangers(self) -> tuple[str, ...]:
        """The kinds of danger that the text hints at."""
        return dangers(self.reading.text)

    @property
    def bereaved(self) -> bool:
        """Whether somebody has died."""
        return self.reading.bereaved

    @property
    def mortal(self) -> bool:
        """Whether it speaks of danger or death at all."""
        return bool(self.reading.grave)

    @property
    def diagnosis(self) -> bool:
        """Whether a diagnosis or a treatment is told: what lies behind, and no feeling."""
        return bool(self.reading.diagnosis)

    @cached_property
    def for_another(self) -> bool:
        """Whether the danger is somebody else's, whom the writer fears for."""
        return self.mortal and _for_another(self.reading)

    # --- what these are made of

    @cached_property
    def _ranked(self) -> list[Prevailing]:
        ranked = self.reading.ranked()
        weighing = [one for one in ranked if SENTIMENT_OF[one.emotion] != "positive" and one.emotion != "calm"]
        return weighing or [one for one in ranked if not self._in_passing(one.emotion)]

    def _in_passing(self, emotion: str) -> bool:
        """Whether a pleasant feeling of a post is of a moment that is over, or told before its trouble."""
        if not self.title or self.reading.lang == "en" or SENTIMENT_OF[emotion] != "positive" or not self.question:
            return False
        if emotion == "fondness" and self.topic == "恋爱":
            return False
        return all(self._passing(one) for one in self.reading.own if one.emotion == emotion)

    def _passing(self, one: Feeling) -> bool:
        text, parts = self.reading.text, self.reading.clauses
        here = parts[one.clause]
        if not here.line:
            return False
        if shaped("zh", "passing", "moment").search(text, here.start, one.start):
            return True
        return any(
            shaped("zh", "passing", "turn").match(text, part.start, part.end) for part in parts[one.clause + 1 :]
        )

    @cached_property
    def _named(self) -> list[Feeling]:
        return [best for one in self._ranked if (best := best_shown(self.reading, one.emotion))]

    @cached_property
    def _asked(self) -> tuple[Intent, Question | None]:
        return main_intent([one for one in self.reading.questions if not self.reading.heavy(one.span)])

    @cached_property
    def _anchor(self) -> Anchor:
        # A question is quoted as such anyway: the anchor is rather something else.
        question = self._asked[1]
        return anchor(self.reading, next(iter(self._named), None), question.span if question else None)

    @cached_property
    def _cause(self) -> Cause | None:
        """The surest one: not quoted already, of the trouble and not of a gladness, and no danger or death."""
        troubled = bool(self._ranked) and SENTIMENT_OF[self._ranked[0].emotion] != "positive"
        sure = (one for one in self.reading.causes if one.weight >= _SURE and not (troubled and one.pleasant))
        return next((one for one in sure if self._is_new(one, self.anchor, self.question)), None)

    @cached_property
    def _belief(self) -> Belief | None:
        found = self.reading.beliefs
        return next((one for one in found if self._is_new(one, self.anchor, self.question, self.cause)), None)

    def _is_new(self, part: Cause | Belief, *taken: str | None) -> bool:
        return part.span.of(self.reading.text) not in taken and not self.reading.heavy(part.span)


@lru_cache(maxsize=4096)
def story(text: str, lang: Lang | None = None, *, titled: bool = False) -> Story:
    """The story of a post (`titled`: its first line is a title) or of one turn of a dialogue."""
    title, newline, _ = text.partition("\n")
    return Story(read(text, lang, titled=titled), title if titled and newline else "")


def _for_another(reading: Reading) -> bool:
    """Whether every clause of danger or death that says whose it is says that it is somebody else's."""
    holders = [whose(reading.plain, reading.clauses[n], reading.clauses[n].end, reading.lang) for n in reading.grave]
    others = [holder for own, holder in holders if not own and holder not in (None, *_LISTENERS)]
    own = [n for n, (is_own, _) in zip(reading.grave, holders, strict=True) if is_own and _says_i(reading, n)]
    return bool(others) and not own


def _says_i(reading: Reading, place: int) -> bool:
    """Whether the writer is the subject of a clause."""
    part = reading.clauses[place]
    return bool(shaped(reading.lang, "holders", "subject").search(reading.plain, part.start, part.end))
