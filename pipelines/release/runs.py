"""Where a text repeats another one word for word: runs of characters that both share.

Every window of `least` characters of the known texts is hashed; a text is looked up window by window, and what hits is
compared character by character, so that a hash alone decides nothing. It takes 16 bytes a character of what is known.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_BASE = np.uint64(0x9E3779B97F4A7C15)
_BETWEEN = np.uint32(0x110000)  # no character: no run goes from one text into the next
_MOST_PLACES = 64  # of a window that stands in many texts: one of them is as good as another

_Codes = npt.NDArray[np.uint32]


class Run(NamedTuple):
    """`text[start:end]` is `known[offset : offset + end - start]`, and `known` is the text that `key` names."""

    start: int
    end: int
    key: str
    known: str
    offset: int


class Runs:
    """Finds runs of `least` characters and more that stand in one of the known texts."""

    def __init__(self, known: Iterable[tuple[str, str]], least: int) -> None:
        """Of texts by a key of the caller's; of two with the same words the first counts."""
        self.least = least
        texts: dict[str, str] = {}
        for key, text in known:
            texts.setdefault(text, key)
        self._key_of = texts
        self._texts = list(texts)
        self._starts: list[int] = []
        parts: list[_Codes] = []
        at = 0
        for text in texts:
            self._starts.append(at)
            parts += [_codes(text), np.array([_BETWEEN], dtype=np.uint32)]
            at += len(text) + 1
        self._codes: _Codes = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint32)
        hashes = _hashes(self._codes, least)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def find(self, text: str) -> list[Run]:
        """The runs of a text, from left to right, each as long as it can be; a known text is a run, however short."""
        if text in self._key_of and len(text) < self.least:
            return [Run(0, len(text), self._key_of[text], text, 0)] if text else []
        codes = _codes(text)
        hashes = _hashes(codes, self.least)
        first = np.searchsorted(self._hashes, hashes)
        inside = first < len(self._hashes)
        inside[inside] = self._hashes[first[inside]] == hashes[inside]
        found: list[Run] = []
        end = 0
        for start in np.flatnonzero(inside).tolist():
            if start < end:
                continue
            length, place = self._longest(codes[start:], hashes[start], int(first[start]))
            if length >= self.least:
                end = start + length
                number = bisect_right(self._starts, place) - 1
                known = self._texts[number]
                found.append(Run(start, end, self._key_of[known], known, place - self._starts[number]))
        return found

    def _longest(self, codes: _Codes, window: Any, first: int) -> tuple[int, int]:
        """The longest run that `codes` begins with, and where it stands among the known characters."""
        best = (0, 0)
        for place in self._order[first : first + _MOST_PLACES].tolist():
            if self._hashes[first] != window:
                break
            first += 1
            known = self._codes[place : place + len(codes)]
            differing = np.flatnonzero(known != codes[: len(known)])
            best = max(best, (int(differing[0]) if len(differing) else len(known), place))
        return best


def _codes(text: str) -> _Codes:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _hashes(codes: _Codes, least: int) -> npt.NDArray[np.uint64]:
    """One number for each window of `least` characters; overflow is meant."""
    n = max(0, len(codes) - least + 1)
    hashes = np.zeros(n, dtype=np.uint64)
    for place in range(least if n else 0):
        hashes = hashes * _BASE + codes[place : place + n]
    return hashes
