"""What a writer asks for, by the form of their questions: advice, understanding, or validation (E §3.1, L3)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pipelines.annotate.rules.clauses import Clause
from pipelines.annotate.rules.quotes import Span, quotation
from pipelines.text.finder import any_of, markers, shaped
from schemas.reasoning import Lang

Intent = Literal["advice", "understanding", "validation"]
# "Is that normal?" is a question of how, too, so the narrower form is tried first.
_TRIED: tuple[Intent, ...] = ("validation", "advice", "understanding")
# What is to be done, or whether one is to blame, bears on the trouble more than what it is about.
_PRESSING: dict[Intent, int] = {"advice": 3, "validation": 3, "understanding": 2}
# Lists of what is asked in despair, for a number, about nothing in particular, and between two ways.
_MARKED = ("sighed", "fact", "bare", "choice")


@dataclass(frozen=True, slots=True)
class Question:
    """One question, `text[span]`, and what it asks for."""

    intent: Intent
    span: Span
    in_title: bool
    plain: bool  # whether its form tells what it asks for, not the mark behind it alone
    fact: bool = False  # whether it asks for a number: 份子钱包多少
    bare: bool = False  # whether it does not say what about: 我该怎么办
    choice: bool = False  # whether it asks which way to go, and not how: 到底是留是回


def questions(text: str, parts: Sequence[Clause], lang: Lang) -> list[Question]:
    """The questions in `text`, in order; those that others ask in quotation marks are none of the writer's."""
    asking, not_asking, reported = (shaped(lang, name) for name in ("asking", "not_asking", "reported"))
    forms = _forms(lang)
    found: list[Question] = []
    sentence = -1  # of the last question
    for part in parts:
        said = text[part.start : part.end]
        if part.spoken or not (asking.search(said) or (part.asked and part.sentence != sentence)):
            continue  # where a clause asks, the mark at the end of its sentence says no more
        if reported.search(said) or (not_asking.search(said) and (lang == "en" or not part.asked)):
            continue
        if lang == "zh" and shaped("zh", "not_asking", "rhetorical").search(said):
            continue
        formed: Intent | None = next((one for one in _TRIED if forms[one].search(said)), None)
        span = quotation(text, parts, Span(part.start, part.end), lang)
        if span is None or (part.line == 0 and formed is None):
            continue  # 婚前恐惧？ is a title and no question
        marked = [one for one in _MARKED if lang == "zh" and shaped("zh", "not_asking", one).search(said)]
        found.append(
            Question(
                intent=formed or "understanding",
                span=span,
                in_title=part.line == 0,
                plain=formed is not None and "sighed" not in marked,
                fact="fact" in marked,
                bare="bare" in marked,
                choice="choice" in marked and formed == "advice",
            )
        )
        sentence = part.sentence
    return found


def asks_nothing(said: str, lang: Lang) -> bool:
    """Whether a clause has the words of a question and is none: how are you, 不知道为什么."""
    return bool(shaped(lang, "not_asking").search(said))


def asks_of_another(said: str, lang: Lang) -> bool:
    """Whether a question is what goes on in somebody else: 他是什么心理. Nobody but they can say."""
    return bool(shaped(lang, "others_mind").search(said))


def main_intent(asked: Sequence[Question]) -> tuple[Intent, Question | None]:
    """What is asked for above all, and the question that says it: the one that presses most.

    What the title asks, what is asked last and what says what it is about count more. Who asks nothing wants to be
    heard: validation.
    """
    if not asked:
        return "validation", None

    def order(place: int) -> tuple[int, bool, bool, int]:
        one = asked[place]
        weight = 2 * _PRESSING[one.intent] if one.plain else 2
        weight += 2 * (one.in_title + (place == len(asked) - 1)) - one.bare
        return 0 if one.fact else weight, one.intent == "advice", one.in_title, place

    main = asked[max(range(len(asked)), key=order)]
    return main.intent, main


@cache
def _forms(lang: Lang) -> dict[Intent, re.Pattern[str]]:
    return {intent: any_of(markers(lang)["intents"][intent]["patterns"], lang) for intent in _TRIED}
