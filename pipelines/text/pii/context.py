"""How a text reads around a span: the words before and behind it, and those of the dictionary that reach over its ends.

Plain Python over jieba's dictionary, for the few spans that are candidates; `segmentation` reads whole columns.
"""

from functools import cache
from itertools import pairwise
from math import log
from typing import NamedTuple

from pipelines.text.pii import vocabulary as voc

_NEAR = 10  # characters read on each side
_LONGEST = 8  # characters of a word
_REACH = 4  # of a word that crosses an end of the span, at most, on one side of it
_UNLISTED = 0.5  # how often a character that the dictionary lacks would stand in its corpus
_NAMES = ("nr", "nrfg", "nrt")
_NAMES_AT_MOST = 1000  # what jieba lists more often as a name is a word, or a hero


class Word(NamedTuple):
    """What the dictionary knows of a word."""

    frequency: int  # in jieba's corpus of 60 million words
    tag: str


class Context(NamedTuple):
    """What stands around a span of a line."""

    left: str
    right: str
    words_before: list[str]  # the last one stands beside the span
    words_behind: list[str]
    borders: tuple[bool, bool]  # whether a word of the plainest reading begins where the span does, and ends with it
    words_inside: list[str]  # of that reading; a word may reach out of the span
    margin: (
        float  # how much more likely what stands around would be by itself, in nats: a span that reads badly is high
    )


@cache
def dictionary() -> dict[str, Word]:
    """The words that jieba lists, names and all."""
    words, *known = voc.listed().get_columns()
    return dict(zip(words.to_list(), map(Word, *(one.to_list() for one in known)), strict=True))


def crossing(text: str, start: int, end: int) -> tuple[int, int]:
    """How frequent the most frequent word is that reaches over each end of the span: 上海[大学]生."""
    words = dictionary()

    def over(place: int) -> int:
        most = 0
        for first in range(max(0, place - _REACH), place):
            for last in range(place + 1, min(len(text), place + _REACH) + 1):
                if not (first <= start and last >= end) and (word := words.get(text[first:last])):
                    most = max(most, word.frequency)
        return most

    return over(start), over(end)


def context(text: str, start: int, end: int) -> Context:
    """What stands around the span of `text`, on its line, up to ten characters away."""
    left = text[max(0, start - _NEAR) : start].rpartition("\n")[2]
    right = text[end : end + _NEAR].partition("\n")[0]
    first, last = len(left), len(left) + end - start
    cost, ends = _read(left + text[start:end] + right)
    cost_left, ends_left = _read(left)
    cost_right, ends_right = _read(right)
    line = left + text[start:end] + right
    return Context(
        left,
        right,
        [left[one:other] for one, other in pairwise([0, *ends_left])],
        [right[one:other] for one, other in pairwise([0, *ends_right])],
        (first in (0, *ends), last in ends),
        [line[one:other] for one, other in pairwise([0, *ends]) if one < last and other > first],
        cost - cost_left - cost_right,
    )


def _read(text: str) -> tuple[float, list[int]]:
    """The cost of the most probable reading of a short text, in nats, and where its words end."""
    words, total = dictionary(), _total()
    costs, follows = [0.0] * (len(text) + 1), [0] * (len(text) + 1)
    for place in range(len(text) - 1, -1, -1):
        known = words.get(text[place])
        costs[place] = total - log(known.frequency or 1 if known else _UNLISTED) + costs[place + 1]
        follows[place] = place + 1
        for last in range(place + 2, min(len(text), place + _LONGEST) + 1):
            known = words.get(text[place:last])
            if known and known.frequency and not is_name(known):
                cost = total - log(known.frequency) + costs[last]
                if cost < costs[place]:
                    costs[place], follows[place] = cost, last
    ends, place = [], 0
    while place < len(text):
        place = follows[place]
        ends.append(place)
    return costs[0], ends


def is_name(word: Word) -> bool:
    """Whether the dictionary lists it as the name of a person."""
    return word.tag in _NAMES and word.frequency < _NAMES_AT_MOST


@cache
def _total() -> float:
    return log(sum(word.frequency for word in dictionary().values()))
