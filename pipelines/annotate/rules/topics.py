"""`topics`: main topic and subtopic by the lexicon, relevance by clean.relevance's rules, risk by clean.risk's."""

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from pipelines.annotate.rules.danger import dangers
from pipelines.annotate.rules.people import another_s
from pipelines.annotate.rules.reading import read
from pipelines.annotate.rules.relevant import relevance
from pipelines.text.finder import Finder, lexicon, markers
from pipelines.text.words import spelled
from schemas.taxonomy import TAXONOMY

_NAMES = {
    "advertisement": "广告",
    "contact_harvesting": "拉人加好友",
    "recruitment": "招人",
    "not_psychological": "与心理无关",
    "not_user_content": "公告或转载",
}
# A word in the title says what a post is about; a second time it adds little.
_IN_TITLE, _AGAIN = 2.0, 0.25
# Less than a word of the title, or two of the story, does not say what a post is about.
_SAYS = 1.5
# Whom a post mentions on the way says less of what it is about than what happened.
_MENTIONED = 0.5
# What is not signed by a person's trouble at all.
_IMPERSONAL = ("科普", "热点")
# A post that looks like an advertisement and tells this much of a person is believed to be a person's.
_STORY = 0.5


def reply(inputs: Mapping[str, Any]) -> str:
    """JSON {topic, subtopic, relevant, risk, why} for {title, description}."""
    title, text = inputs["title"] or "", "\n".join(filter(None, (inputs["title"], inputs["description"])))
    topic, subtopic, words, _ = subject(title, text)
    relevant, because = _relevant(title, text, topic)
    why = f"依据的词语是{'、'.join(words)}" if words else "没有词典里的话题词"
    if relevant and topic is None:  # whoever asks for help asks about something
        topic = "情绪" if read(text, titled=bool(title)).own else "成长"
        why = f"{why}，只按有没有情绪词归到{topic}"
    said = {"topic": topic, "subtopic": subtopic, "relevant": relevant, "risk": list(dangers(text))}
    return json.dumps({**said, "why": f"{why}；{because}"}, ensure_ascii=False)


class Subject(NamedTuple):
    """What a post is about: main topic and subtopic, the words of its text that say so, and whether these are enough
    to tell a reader. Topics are None where no word of any stands in it.
    """

    topic: str | None
    subtopic: str | None
    words: tuple[str, ...]
    enough: bool


@lru_cache(maxsize=4096)
def subject(title: str, text: str) -> Subject:
    """What a post is about.

    `text` is the whole post, title and all.
    """
    weights: defaultdict[tuple[str, str], float] = defaultdict(float)
    words: dict[tuple[str, str], dict[str, None]] = {}
    seen: set[tuple[str, str]] = set()
    others = another_s(text)
    for hit in _finder().hits(text):
        if hit.start in others:  # 他女儿: no family of the writer's
            continue
        word = text[hit.start : hit.end]
        for topic, subtopic in _places()[hit.name]:
            place = (topic, subtopic)
            weight = _IN_TITLE if hit.start < len(title) else _MENTIONED if word in _mentioned() else 1.0
            weights[place] += weight * (_AGAIN if (subtopic, word) in seen else 1.0) * _weight(topic)
            words.setdefault(place, {})[word] = None
        seen.update((subtopic, word) for _, subtopic in _places()[hit.name])
    if not weights:
        return Subject(None, None, (), False)
    mains: defaultdict[str, float] = defaultdict(float)
    for (topic, _), weight in weights.items():
        mains[topic] += weight
    main = max(mains, key=lambda topic: mains[topic])
    best = max((place for place in weights if place[0] == main), key=lambda place: weights[place])
    return Subject(main, best[1], tuple(words[best])[:3], mains[main] >= _SAYS)


def _relevant(title: str, text: str, topic: str | None) -> tuple[bool, str]:
    found = relevance(text, title)
    if found.reason:
        return False, f"有{_NAMES[found.reason]}的迹象"
    doubts = set(found.doubts)
    if doubts - {"not_psychological"} and found.score < _STORY:
        named = "、".join(_NAMES[doubt] for doubt in found.doubts)
        return False, f"像是{named}，讲自己的不多"
    if "not_psychological" in doubts and (topic is None or topic in _IMPERSONAL):
        return False, "不像一个人的困扰"
    return True, "讲的是一个人的困扰"


@cache
def _finder() -> Finder:
    """Every word once, under itself: a word may stand under several subtopics."""
    return Finder(((word, word) for word in _places()), "zh")


@cache
def _places() -> dict[str, list[tuple[str, str]]]:
    """Per word the main topics and subtopics that list it."""
    places: dict[str, list[tuple[str, str]]] = {}
    for topic, subtopics in TAXONOMY.items():
        for subtopic in subtopics:
            for word in dict.fromkeys(spelled(lexicon("topics")[topic][subtopic])):
                places.setdefault(word, []).append((topic, subtopic))
    return places


@cache
def _mentioned() -> frozenset[str]:
    return frozenset(spelled(markers("zh")["mentioned"]["words"]))


def _weight(topic: str) -> float:
    weight: float = lexicon("topics")["weights"][topic]
    return weight
