"""What may be suggested: the steps of `steps.<lang>.toml` whose conditions all hold for what was read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from pipelines.annotate.rules.intents import Intent
from pipelines.text.finder import any_of, lexicon, markers, shaped, worded
from schemas.reasoning import Lang

# Before a word for people: they are of somebody else's circle.
_OTHERS = ("他", "她")


@dataclass(frozen=True, slots=True)
class Need:
    """What somebody wants and tells, as far as a suggestion must fit it."""

    lang: Lang
    intent: Intent
    emotion: str | None  # that a word of theirs names
    topic: str
    focus: str  # what they put first: title, question, what is quoted of them
    text: str  # all that they wrote
    asked: str = ""  # the question itself, where one is asked
    title: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """Something small to do, and what must be read before it is said; an empty condition always holds."""

    say: str
    intents: frozenset[str]
    emotions: frozenset[str]
    topics: frozenset[str]
    who: frozenset[str]  # circles of people, one of which the text must speak of
    when: re.Pattern[str] | None  # of the focus: what is told in passing asks for no advice
    unless: re.Pattern[str] | None

    @property
    def narrowness(self) -> int:
        """How many conditions it has: of those that fit, the narrowest say most to the point."""
        return sum(map(bool, (self.emotions, self.topics, self.who))) + 2 * bool(self.when)

    def fits(self, need: Need) -> bool:
        """Whether every condition holds."""
        return (
            need.intent in self.intents
            and (not self.emotions or need.emotion in self.emotions)
            and (not self.topics or need.topic in self.topics)
            and (not self.when or bool(self.when.search(need.focus)))
            and not (self.unless and self.unless.search(need.text))
            and (not self.who or bool(self.who & _circles(need.asked or need.text, need)))
            and (not need.asked or self._answers(need))
        )

    def _answers(self, need: Need) -> bool:
        """Whether it is to the point: who asks for one thing, or which way to go, is told of that and of no other."""
        if need.lang == "en":
            return True
        if shaped("zh", "not_asking", "choice").search(need.asked):
            return self._called_for(need.asked)
        if shaped("zh", "not_asking", "open").search(need.asked) and (self.emotions or not need.title):
            return True  # it helps with the feeling
        return self._called_for(need.asked) or self._called_for(need.title)

    def _called_for(self, told: str) -> bool:
        return bool(self.when and self.when.search(told))

    def closeness(self, need: Need) -> tuple[bool, int]:
        """How near it comes to what is asked: what the question itself calls for, then what has more conditions."""
        return self._called_for(need.asked), self.narrowness


@lru_cache(maxsize=4096)
def fitting(need: Need) -> tuple[str, ...]:
    """What may be suggested, the closest of what fits; empty where nothing does, or where nothing is asked for."""
    if never(need.lang).search(need.text):
        return ()
    found = [one for one in steps(need.lang) if one.fits(need)]
    closeness = [one.closeness(need) for one in found]
    closest = max(closeness, default=(False, 0))
    return tuple(one.say for one, close in zip(found, closeness, strict=True) if close == closest)


@cache
def steps(lang: Lang) -> tuple[Step, ...]:
    """The steps of a language."""
    return tuple(_step(table, lang) for table in lexicon(f"steps.{lang}")["step"])


@cache
def never(lang: Lang) -> re.Pattern[str]:
    """What forbids any suggestion."""
    return any_of([lexicon(f"steps.{lang}")["never"]], lang)


def _step(table: Mapping[str, Any], lang: Lang) -> Step:
    def pattern(name: str) -> re.Pattern[str] | None:
        return any_of([table[name]], lang) if name in table else None

    def listed(name: str, default: tuple[str, ...] = ()) -> frozenset[str]:
        return frozenset(table.get(name, default))

    return Step(
        say=table["say"],
        intents=listed("intent", ("advice",)),
        emotions=listed("emotion"),
        topics=listed("topic"),
        who=listed("who"),
        when=pattern("when"),
        unless=pattern("unless"),
    )


def _circles(text: str, need: Need) -> frozenset[str]:
    """Whom `text` speaks of; all that the post speaks of where that is nobody."""
    return circles(text, need.lang) or circles(need.text, need.lang)


@lru_cache(maxsize=4096)
def circles(text: str, lang: Lang) -> frozenset[str]:
    """The circles of which somebody stands in `text`: of the writer's, and not 她同学."""
    return frozenset(
        name
        for name in markers(lang)["circles"]
        if any(lang == "en" or text[: one.start()][-1:] not in _OTHERS for one in circle(name, lang).finditer(text))
    )


def circle(name: str, lang: Lang) -> re.Pattern[str]:
    """The words for the people of a circle."""
    return worded(lang, "circles", name)
