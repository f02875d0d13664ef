"""The lexicons of the rules (`lexicons/*.toml`), and finding many words in one text."""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.clean.words import spelled
from schemas.reasoning import Lang

FOLDER = Path(__file__).parent / "lexicons"


@cache
def lexicon(name: str) -> dict[str, Any]:
    """The tables of `lexicons/<name>.toml`."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def markers(lang: Lang) -> dict[str, Any]:
    """What stands around feelings in a language: degrees, denials, persons, connectives, forms of questions."""
    return lexicon(f"markers.{lang}")


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

    def hits(self, text: str, start: int = 0, end: int | None = None) -> list[Hit]:
        """The words in `text[start:end]`, in order, each with the name of its list."""
        found = self._pattern.finditer(text, start, len(text) if end is None else end)
        return [Hit(one.start(), one.end(), self._name_of[one[0].lower()]) for one in found]

    def names(self, text: str) -> set[str]:
        """The lists of which a word stands in `text`."""
        return {hit.name for hit in self.hits(text)}


def alternatives(words: Iterable[str], lang: Lang) -> str:
    """A pattern of any of `words`, the longest first; words that begin alike are tried together."""
    by_first: dict[str, list[str]] = {}
    for word in sorted(set(words), key=lambda word: (-len(word), word)):
        by_first.setdefault(word[0], []).append(word[1:])
    groups = (f"{re.escape(first)}(?:{'|'.join(map(re.escape, rest))})" for first, rest in sorted(by_first.items()))
    pattern = f"(?:{'|'.join(groups)})"
    return rf"(?<![\w']){pattern}(?!\w)" if lang == "en" else pattern


def any_of(patterns: Iterable[str], lang: Lang) -> re.Pattern[str]:
    """Where any of `patterns` matches; English ones whatever the case."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE if lang == "en" else 0)


def straight(text: str) -> str:
    """`text` with straight apostrophes, character for character: what English words are looked for in."""
    return text.replace("\u2019", "'").replace("\u2018", "'")
