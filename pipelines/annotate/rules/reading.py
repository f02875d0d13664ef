"""All that the rules read out of one text: its feelings, causes, beliefs and questions, each with its place in it."""

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pipelines.annotate.rules.beliefs import Belief, beliefs
from pipelines.annotate.rules.causes import Cause, causes
from pipelines.annotate.rules.clauses import Clause, clauses
from pipelines.annotate.rules.feelings import Feeling, feelings
from pipelines.annotate.rules.intents import Question, questions
from pipelines.annotate.rules.lexicon import straight
from pipelines.annotate.rules.quotes import Span, quotation
from schemas.labels import SENTIMENT_OF
from schemas.reasoning import Lang

_HAN, _LATIN = re.compile(r"[\u3400-\u9fff]"), re.compile(r"[A-Za-z]+")
# Who asks for help tells of better days as well: what is pleasant counts less, and so does not knowing what to do.
_WEIGHTS = {"negative": 1.0, "neutral": 0.5, "positive": 0.35}
# What a title names is what the post is about.
_IN_TITLE = 1.5


@dataclass(frozen=True, slots=True)
class Prevailing:
    """The emotion that prevails in a text, the word that says it most strongly, and how strongly (1–5)."""

    emotion: str
    feeling: Feeling
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

    @property
    def plain(self) -> str:
        """The text as the lexicons read it, character for character."""
        return plainly(self.text, self.lang)

    @property
    def own(self) -> list[Feeling]:
        """The writer's feelings, those that are denied left out."""
        return [one for one in self.feelings if one.own and not one.denied]

    def word(self, feeling: Feeling) -> str:
        """The word itself, as it stands in the text."""
        return self.text[feeling.start : feeling.end]

    def quoted(self, start: int, end: int) -> Span | None:
        """A quotation that holds `text[start:end]`."""
        return quotation(self.text, self.clauses, Span(start, end), self.lang)

    def ranked(self, among: list[Feeling] | None = None) -> list[Prevailing]:
        """The emotions of the text (of the writer's feelings, unless others are given), the one that prevails first."""
        by_emotion: dict[str, list[Feeling]] = defaultdict(list)
        for feeling in self.own if among is None else among:
            by_emotion[feeling.emotion].append(feeling)

        def weight(felt: list[Feeling]) -> float:
            said = sum(one.intensity * (1.0 if self.clauses[one.clause].line else _IN_TITLE) for one in felt)
            return said * _WEIGHTS[SENTIMENT_OF[felt[0].emotion]]

        order = sorted(by_emotion.values(), key=lambda felt: (-weight(felt), felt[0].start))
        strongest = [max(felt, key=lambda one: one.intensity) for felt in order]
        return [Prevailing(one.emotion, one, one.intensity) for one in strongest]


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
