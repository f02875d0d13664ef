"""How often the words of several lists stand in each text: one pass of an automaton (Aho and Corasick, 1975)."""

from collections.abc import Iterable, Mapping
from itertools import product

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.core.arrow import buffers, decoded
from pipelines.core.kernels import Bytes, Places, kernel
from pipelines.text.characters import CODES

Counts = npt.NDArray[np.int32]
Table = npt.NDArray[np.signedinteger]


def spelled(pattern: str) -> list[str]:
    """All words that an alternation of words stands for.

    `[一二]` is any of its characters, a range (`[0-9]`) all from the one to the other, what stands before `?` may be
    missing: 没有?我 is 没我 and 没有我. After a backslash a character is itself. That is all.
    """
    if "|" in pattern:
        return [word for one in pattern.split("|") for word in spelled(one)]
    choices: list[list[str]] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
            choices.append([pattern[at]])
        elif pattern[at] == "[":
            end = pattern.index("]", at)
            choices.append(_members(pattern[at + 1 : end]))
            at = end
        elif pattern[at] == "?":
            choices[-1] = ["", *choices[-1]]
        else:
            choices.append([pattern[at]])
        at += 1
    return ["".join(word) for word in product(*choices)]


def _members(inside: str) -> list[str]:
    if len(inside) > 2 and inside[1] == "-":
        first, last = ord(inside[0]), ord(inside[2])
        return [chr(code) for code in range(first, last + 1)] + _members(inside[3:])
    return [inside[0], *_members(inside[1:])] if inside else []


class Words:
    """Lists of words, each under its name, to be counted together.

    A word of a list that holds another one of it is left out, so that 抑郁症 counts once where 抑郁 is listed; else
    occurrences count each, and two that overlap count both.
    """

    def __init__(self, lists: Mapping[str, Iterable[str]]) -> None:
        self.names = tuple(lists)
        self._automaton = _automaton([_shortest(words) for words in lists.values()])

    def counted(self, texts: pl.Series) -> dict[str, pl.Series]:
        """Per list, how many of its words stand in each text (Int32); 0 for a null."""
        counts = _counts(*buffers(texts), *self._automaton, len(self.names))
        return {name: pl.Series(name, counts[:, n]) for n, name in enumerate(self.names)}


def _shortest(words: Iterable[str]) -> set[str]:
    shortest: set[str] = set()
    for word in sorted(set(words) - {""}, key=len):
        if not any(word[a:b] in shortest for a in range(len(word)) for b in range(a + 1, len(word) + 1)):
            shortest.add(word)
    return shortest


def _automaton(lists: list[set[str]]) -> tuple[Table, Table, Table, Table]:
    """The automaton over characters. `symbols` numbers the characters that stand in words, 0 for all others;
    `following` is the next state of each state and symbol, negative (−1 − state) where a word ends; `list_of[begins[s]
    : begins[s + 1]]` are the lists it is of.
    """
    alphabet = sorted({character for words in lists for word in words for character in word})
    symbols = np.zeros(CODES, np.int16)  # narrow, so that the tables stay in the cache
    symbols[[ord(character) for character in alphabet]] = np.arange(1, len(alphabet) + 1)
    steps: list[dict[int, int]] = [{}]
    ends: list[list[int]] = [[]]
    for place, words in enumerate(lists):
        for word in sorted(words):
            state = 0
            for symbol in symbols[[ord(character) for character in word]].tolist():
                if symbol not in steps[state]:
                    steps[state][symbol] = len(steps)
                    steps.append({})
                    ends.append([])
                state = steps[state][symbol]
            ends[state].append(place)
    following = np.zeros((len(steps), len(alphabet) + 1), np.int32)
    back = [0] * len(steps)
    queue = [0]
    for state in queue:  # breadth first: the longest proper suffix of a state comes before it
        following[state] = following[back[state]]
        ends[state] = ends[state] + (ends[back[state]] if state else [])
        for symbol, to in steps[state].items():
            back[to] = int(following[back[state], symbol]) if state else 0
            following[state, symbol] = to
            queue.append(to)
    assert len(steps) <= np.iinfo(np.int16).max, "too many words for one automaton"
    begins = np.cumsum([0, *(len(lists) for lists in ends)]).astype(np.int32)
    ends_here = np.diff(begins)[following] > 0
    following = np.where(ends_here, -1 - following, following).astype(np.int16)
    return symbols, following, begins, np.array([place for lists in ends for place in lists], np.int32)


@kernel
def _counts(
    data: Bytes, offsets: Places, symbols: Table, following: Table, begins: Table, list_of: Table, n_lists: int
) -> Counts:
    rows = len(offsets) - 1
    counts = np.zeros((rows, n_lists), np.int32)
    for row in range(rows):
        at, end, state = offsets[row], offsets[row + 1], 0
        while at < end:
            code, at = decoded(data, at)
            state = following[state, symbols[code] if code < len(symbols) else 0]
            if state < 0:
                state = -1 - state
                for one in range(begins[state], begins[state + 1]):
                    counts[row, list_of[one]] += 1
    return counts
