"""Whether one post is a person's trouble: the rules of clean.relevance, without a column around the text.

A column of one text costs clean.relevance ten milliseconds; a test holds the two equal.
"""

import re
from functools import cache, lru_cache
from typing import Any, NamedTuple

from pipelines.text import finder
from pipelines.text.finder import alternatives
from pipelines.text.lexicon import lexicon as clean_lexicon
from pipelines.text.words import spelled
from schemas.labels import DOUBTS

_SIGNED = tuple(label for label in DOUBTS if label != "not_psychological")
_HARDLY_A_STORY = 0.2  # as in clean.relevance


class Relevance(NamedTuple):
    """What clean.relevance says: a reason to drop, or doubts, and the emotional context (0 … 1)."""

    reason: str | None
    doubts: tuple[str, ...]
    score: float


@lru_cache(maxsize=4096)
def relevance(text: str, title: str) -> Relevance:
    """See `pipelines.text.relevance.relevance`: `text` is the whole post, title and all."""
    counts = {name: _count(pattern, text) for name, pattern in _lists().items()}
    own = counts["self"] - counts["we"]
    score = (
        0.40 * (1 - 0.7 ** counts["feelings"])
        + 0.20 * min(1.0, max(0.0, own / 4))
        + 0.15 * min(1.0, counts["people"] / 3)
        + 0.10 * (counts["asking"] > 0)
        + 0.15 * min(1.0, len(text) / 100)
    )
    found = [
        (label, clear)
        for label in _SIGNED
        if (clear := _signed(label, text, title, own, counts["feelings"])) is not None
    ]
    if (clear := _elsewhere(counts, own, score)) is not None:
        found.append(("not_psychological", clear))
    reason = next((label for label, clear in found if clear), None)
    return Relevance(reason, () if reason else tuple(label for label, _ in found), score)


def _signed(label: str, text: str, title: str, own: int, feelings: int) -> bool | None:
    """Whether a case is clear, or None where it is not even doubtful."""
    near, signs = _signs(label)
    if not near.search(text):
        return None
    rules: dict[str, Any] = clean_lexicon("relevance", finder.__file__)[label]
    shown = {name for name, sign in signs.items() if sign.search(title if name == "title" else text)}
    if rules["needs"] not in shown or len(shown) < rules["doubtful"]:
        return None
    clear = rules.get("certain", rules["needs"]) in shown and len(shown) >= rules["clear"]
    return clear and own <= rules["own"] and feelings <= rules["feelings"]


def _elsewhere(counts: dict[str, int], own: int, score: float) -> bool | None:
    most = max(counts[topic] for topic in clean_lexicon("relevance", finder.__file__)["not_psychological"]["topics"])
    feelings = counts["feelings"]
    doubtful = most >= 2 + feelings and feelings <= 2 and own <= 6
    no_story = score < _HARDLY_A_STORY and feelings + counts["people"] == 0
    if not (doubtful or no_story):
        return None
    return most >= 3 and feelings == 0 and counts["couples"] == 0 and own <= 6


def _count(pattern: re.Pattern[str], text: str) -> int:
    """Occurrences of the words, those that overlap counted each."""
    count = at = 0
    while found := pattern.search(text, at):
        count += 1
        at = found.start() + 1
    return count


@cache
def _lists() -> dict[str, re.Pattern[str]]:
    words = clean_lexicon("relevance", finder.__file__)
    lists = {**words["story"], **words["not_psychological"]["topics"]}
    return {name: _any(one) for name, one in lists.items()}


def _any(words: list[str] | str) -> re.Pattern[str]:
    """Any of the words, those left out that hold another one: no two then begin at the same character."""
    listed = set(spelled("|".join(words) if isinstance(words, list) else words)) - {""}
    shortest: set[str] = set()
    for word in sorted(listed, key=len):
        if not any(word[a:b] in shortest for a in range(len(word)) for b in range(a + 1, len(word) + 1)):
            shortest.add(word)
    return re.compile(alternatives(shortest, "zh"))


@cache
def _signs(label: str) -> tuple[re.Pattern[str], dict[str, re.Pattern[str]]]:
    rules = clean_lexicon("relevance", finder.__file__)[label]
    return _any(rules["near"]), {
        name: re.compile(pattern.replace("$", r"\Z")) for name, pattern in rules["signs"].items()
    }
