"""Finding many words in one text."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from pipelines.text.words import spelled
from schemas.reasoning import Lang


class Hit(NamedTuple):
    """A word of a list as it stands in a text."""

    start: int
    end: int
    name: str


class Finder:
    """The words of several lists, found in one pass: leftmost, longest, and none inside another.

    Chinese words may stand anywhere, English ones between the borders of words, whatever the case. A word of several
    lists counts to the first.
    """

    def __init__(self, lists: Iterable[tuple[str, str]], lang: Lang) -> None:
        self._name_of: dict[str, str] = {}
        for name, pattern in lists:
            for word in spelled(pattern):
                self._name_of.setdefault(word.lower(), name)
        self._pattern = re.compile(alternatives(self._name_of, lang), re.IGNORECASE if lang == "en" else 0)

    def hits(self, text: str) -> list[Hit]:
        """The words in `text`, in order, each with the name of its list."""
        return [Hit(one.start(), one.end(), self._name_of[one[0].lower()]) for one in self._pattern.finditer(text)]

    def names(self, text: str) -> set[str]:
        """The lists of which a word stands in `text`."""
        return {hit.name for hit in self.hits(text)}


def alternatives(words: Iterable[str], lang: Lang) -> str:
    """A pattern of any of `words`, the longest first; words that begin alike are tried together."""
    pattern = _tree(sorted(set(words)))
    return rf"(?<![\w']){pattern}(?!\w)" if lang == "en" else pattern


def _tree(words: Iterable[str]) -> str:
    """The pattern of `alternatives`, letter by letter: what two words begin with is looked at once."""
    by_first: dict[str, list[str]] = {}
    for word in words:
        by_first.setdefault(word[:1], []).append(word[1:])
    ends = by_first.pop("", None) is not None
    branches = [re.escape(first) + _tree(rest) for first, rest in by_first.items()]
    if not branches:
        return ""
    return f"(?:{'|'.join(branches)}){'?' if ends else ''}"


def any_of(patterns: Iterable[str], lang: Lang) -> re.Pattern[str]:
    """Where any of `patterns` matches; English ones whatever the case."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE if lang == "en" else 0)


def straight(text: str) -> str:
    """`text` with straight apostrophes, character for character: what English words are looked for in."""
    return text.replace("\u2019", "'").replace("\u2018", "'")
