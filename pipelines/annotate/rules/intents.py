"""What a writer asks for, by the form of their questions: advice, understanding, or validation (E §3.1, L3)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pipelines.annotate.rules.clauses import Clause
from pipelines.annotate.rules.lexicon import any_of, markers
from pipelines.annotate.rules.quotes import Span, quotation
from schemas.reasoning import Lang

Intent = Literal["advice", "understanding", "validation"]
# "Is that normal?" is a question of how, too, so the narrower form is tried first.
_TRIED: tuple[Intent, ...] = ("validation", "advice", "understanding")


@dataclass(frozen=True, slots=True)
class Question:
    """One question, `text[span]`, and what it asks for."""

    intent: Intent
    span: Span
    in_title: bool
    plain: bool  # whether its form tells what it asks for, not the mark behind it alone


def questions(text: str, parts: Sequence[Clause], lang: Lang) -> list[Question]:
    """The questions in `text`, in order; those that others ask in quotation marks are none of the writer's."""
    asking, not_asking, reported = (_pattern(name, lang) for name in ("asking", "not_asking", "reported"))
    forms = _forms(lang)
    found: list[Question] = []
    sentence = -1  # of the last question
    for part in parts:
        said = text[part.start : part.end]
        if part.spoken or not (asking.search(said) or (part.asked and part.sentence != sentence)):
            continue  # where a clause asks, the mark at the end of its sentence says no more
        if reported.search(said) or (not_asking.search(said) and (lang == "en" or not part.asked)):
            continue
        formed: Intent | None = next((one for one in _TRIED if forms[one].search(said)), None)
        span = quotation(text, parts, Span(part.start, part.end), lang)
        if span is None:
            continue
        found.append(Question(formed or "understanding", span, part.line == 0, formed is not None))
        sentence = part.sentence
    return found


def asks_nothing(said: str, lang: Lang) -> bool:
    """Whether a clause has the words of a question and is none: how are you, 不知道为什么."""
    return bool(_pattern("not_asking", lang).search(said))


def main_intent(asked: Sequence[Question]) -> tuple[Intent, Question | None]:
    """What the questions ask for, and the one that says it best.

    A title says what is asked, where the form of its question is plain; else most of the questions do, the last counted
    twice. Who asks nothing wants to be heard: validation.
    """
    if not asked:
        return "validation", None
    if titled := next((one for one in asked if one.in_title and one.plain), None):
        return titled.intent, titled
    weights: Counter[Intent] = Counter()
    for place, question in enumerate(asked):
        weights[question.intent] += 1 + question.plain + (place == len(asked) - 1)
    intent = max(_TRIED, key=lambda one: weights[one])
    of_it = [question for question in asked if question.intent == intent]
    return intent, of_it[-1]


@cache
def _forms(lang: Lang) -> dict[Intent, re.Pattern[str]]:
    return {intent: any_of(markers(lang)["intents"][intent]["patterns"], lang) for intent in _TRIED}


@cache
def _pattern(name: str, lang: Lang) -> re.Pattern[str]:
    return any_of(markers(lang)[name]["patterns"], lang)
