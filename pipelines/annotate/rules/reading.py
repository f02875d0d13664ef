"""All that the rules read out of one text: its feelings, causes, beliefs and questions, each with its place in it."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pipelines.annotate.rules.beliefs import Belief, beliefs
from pipelines.annotate.rules.causes import Cause, causes
from pipelines.annotate.rules.clauses import Clause, clauses
from pipelines.annotate.rules.contexts import bereaved, diagnoses, grave, is_over, signs
from pipelines.annotate.rules.feelings import Feeling, feelings
from pipelines.annotate.rules.intents import Question, questions
from pipelines.annotate.rules.quotes import SHORTEST, Span, quotation, wider
from pipelines.text.finder import straight, worded
from schemas.labels import SENTIMENT_OF
from schemas.reasoning import Lang

_HAN, _LATIN = re.compile(r"[\u3400-\u9fff]"), re.compile(r"[A-Za-z]+")
# Who asks for help tells of better days as well: what is pleasant counts less, and so does not knowing what to do.
_WEIGHTS = {"negative": 1.0, "neutral": 0.5, "positive": 0.35}
# What a title names is what the post is about.
_IN_TITLE = 1.5


@dataclass(frozen=True, slots=True)
class Prevailing:
    """The emotion that prevails in a text, and how strongly the strongest word says it (1–5)."""

    emotion: str
    intensity: int


@dataclass(frozen=True)
class Reading:
    """What is read out of `text`; places are places in it. What few ask for is read when it is asked for."""

    text: str
    lang: Lang
    clauses: tuple[Clause, ...]
    feelings: tuple[Feeling, ...]

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """What the feelings are said to come from, the surest first."""
        return tuple(causes(self.plain, self.clauses, self.feelings, self.lang))

    @cached_property
    def beliefs(self) -> tuple[Belief, ...]:
        """What the wording shows to be believed, the most telling first."""
        return tuple(beliefs(self.plain, self.clauses, self.lang))

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """What is asked, in order."""
        return tuple(questions(self.plain, self.clauses, self.lang))

    @cached_property
    def grave(self) -> frozenset[int]:
        """The clauses that speak of danger or death."""
        return grave(self.plain, self.clauses, self.lang)

    @cached_property
    def bereaved(self) -> bool:
        """Whether somebody has died."""
        return bereaved(self.plain, self.clauses, self.lang)

    @cached_property
    def diagnosis(self) -> frozenset[int]:
        """The clauses that speak of a diagnosis or a treatment."""
        return diagnoses(self.plain, self.clauses, self.lang)

    @cached_property
    def plain(self) -> str:
        """The text as the lexicons read it, character for character."""
        return plainly(self.text, self.lang)

    @cached_property
    def own(self) -> tuple[Feeling, ...]:
        """The writer's feelings, none that is denied nor a sign of one, no mere courtesy, and no past ones where those
        are over or others are felt today."""
        told = tuple(one for one in self.feelings if one.own and not one.denied and not self._courteous(one))
        if denied := {one.emotion for one in self.feelings if one.own and one.denied}:
            told = tuple(one for one in told if one.emotion not in denied or not self._is_sign(one))
        today = tuple(one for one in told if not one.past)
        if len(today) == len(told):
            return told
        troubled = any(SENTIMENT_OF[one.emotion] != "positive" for one in today)
        return today if troubled or is_over(self.plain, self.lang) else told

    def heavy(self, span: Span) -> bool:
        """Whether any of the clauses that a span touches speaks of danger or death."""
        touched = (self.clauses[place] for place in self.grave)
        return any(one.start < span.end and span.start < one.end for one in touched)

    def sentence(self, span: Span) -> Span:
        """The sentence that a span begins in."""
        here = next((one.sentence for one in self.clauses if one.start <= span.start < one.end), None)
        parts = [one for one in self.clauses if one.sentence == here]
        return Span(parts[0].start, parts[-1].end) if parts else span

    def _courteous(self, feeling: Feeling) -> bool:
        """Whether a word is only the thanks of who asks for something: 该怎么办呢？谢谢."""
        if feeling.emotion != "gratitude" or not worded(self.lang, "moves", "thanks").fullmatch(self.word(feeling)):
            return False
        return any(one.span.end - one.span.start > len(self.word(feeling)) + SHORTEST for one in self.questions)

    def _is_sign(self, feeling: Feeling) -> bool:
        return self.word(feeling).lower() in signs(self.lang)

    def word(self, feeling: Feeling) -> str:
        """The word itself, as it stands in the text."""
        return self.text[feeling.start : feeling.end]

    def quoted(self, start: int, end: int) -> Span | None:
        """A quotation that holds `text[start:end]`."""
        return quotation(self.text, self.clauses, Span(start, end), self.lang)

    def widened(self, start: int, end: int) -> Span | None:
        """The clause `text[start:end]` with a neighbour; None where that is too long or too far."""
        return wider(self.text, self.clauses, Span(start, end), self.lang)

    def ranked(self, among: Sequence[Feeling] | None = None) -> list[Prevailing]:
        """The emotions of the text (of the writer's feelings, unless others are given), the one that prevails first."""
        by_emotion: dict[str, list[Feeling]] = defaultdict(list)
        for feeling in self.own if among is None else among:
            by_emotion[feeling.emotion].append(feeling)

        def weight(felt: list[Feeling]) -> float:
            said = sum(one.intensity * (1.0 if self.clauses[one.clause].line else _IN_TITLE) for one in felt)
            return said * _WEIGHTS[SENTIMENT_OF[felt[0].emotion]]

        order = sorted(by_emotion.values(), key=lambda felt: (-weight(felt), felt[0].start))
        return [Prevailing(felt[0].emotion, max(one.intensity for one in felt)) for felt in order]


def language(text: str) -> Lang:
    """`zh` where a text has as many Chinese characters as English words, else `en`."""
    return "zh" if len(_HAN.findall(text)) >= len(_LATIN.findall(text)) else "en"


@lru_cache(maxsize=4096)
def read(text: str, lang: Lang | None = None, *, titled: bool = False, conveyed: bool = False) -> Reading:
    """What the rules read out of `text`.

    Args:
        text: A post, or a turn of a dialogue.
        lang: Its language; told by its characters where it is not given.
        titled: Whether its first line is a title.
        conveyed: Whether it is an answer, and what it conveys to its reader counts as a feeling.
    """
    lang = lang or language(text)
    plain = plainly(text, lang)
    parts = clauses(plain, titled=titled and "\n" in text.strip())
    return Reading(text, lang, tuple(parts), tuple(feelings(plain, parts, lang, conveyed=conveyed)))


def plainly(text: str, lang: Lang) -> str:
    """`text` with straight apostrophes where they part English words, character for character."""
    return straight(text) if lang == "en" else text
