"""Where a text repeats another one word for word: runs of characters that both share.

Of the known texts a window in every few is hashed, so that each run of `least` characters holds a whole one; what hits
is compared character by character. It takes about 8 bytes a character of what is known.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipelines.core.overlap import Points, hashes, points

_BASE = 0x9E3779B97F4A7C15
_BETWEEN = np.uint32(0x110000)  # no character: no run goes from one text into the next
_BETWEEN_SEARCHED = np.uint32(0x110001)  # the same among the texts that are searched: none is like one of the known

_Places = npt.NDArray[np.int64]


class Run(NamedTuple):
    """`text[start:end]` is `known[offset : offset + end - start]`, and `known` is the text that `key` names."""

    start: int
    end: int
    key: str
    known: str
    offset: int


class Runs:
    """Finds runs of `least` characters and more that are in one of the known texts."""

    def __init__(self, known: Iterable[tuple[str, str]], least: int) -> None:
        """Of texts by a key of the caller's; of two with the same words the first counts."""
        self.least = least
        # Windows of this many characters, so far apart: no gaps, and in any `least` characters lies a whole one.
        self._window = least // 2 + 1
        self._apart = least + 1 - self._window
        texts: dict[str, str] = {}
        for key, text in known:
            texts.setdefault(text, key)
        self._key_of = texts
        self._texts = list(texts)
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        self._starts: _Places = np.cumsum(lengths + 1) - lengths  # a mark before every text, and after the last
        self._codes: Points = np.full(int(lengths.sum()) + len(texts) + 1, _BETWEEN, dtype=np.uint32)
        for start, text in zip(self._starts.tolist(), texts, strict=True):
            self._codes[start : start + len(text)] = points(text)
        windows = hashes(self._codes, self._window, _BASE, self._apart)
        order = np.argsort(windows, kind="stable")
        self._hashes = windows[order]
        self._places: _Places = order * self._apart
        # Which hashes begin as one of the known does: most windows of a text end here.
        self._shift = np.uint64(64 - max(8, (16 * len(windows)).bit_length()))
        self._begins = np.zeros(1 << (64 - int(self._shift)), dtype=bool)
        self._begins[self._hashes >> self._shift] = True

    def find(self, text: str) -> list[Run]:
        """The runs of a text, from left to right, each as long as it can be; a known text is a run, however short.

        Where two runs overlap, the first is whole, and what is left of the second is a run, however short: so no part
        of a run is outside of all.
        """
        if text in self._key_of and len(text) < self.least:
            return [Run(0, len(text), self._key_of[text], text, 0)] if text else []
        if len(text) < self.least:
            return []
        runs: list[Run] = []
        end = 0
        for first, last, place in self._shared(points(text)):
            begin = max(first, end)
            if last > begin:
                offset = place + begin - first
                number = bisect_right(self._starts, offset) - 1
                known = self._texts[number]
                runs.append(Run(begin, last, self._key_of[known], known, offset - int(self._starts[number])))
                end = last
        return runs

    def repeating(self, texts: Sequence[str]) -> list[bool]:
        """Of each text whether `find` finds anything in it; many texts are searched at once."""
        repeats = [0 < len(text) < self.least and text in self._key_of for text in texts]
        if not self._key_of or not texts:
            return repeats
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        starts = np.cumsum(lengths + 1) - lengths - 1
        codes: Points = np.full(int(lengths.sum()) + len(texts), _BETWEEN_SEARCHED, dtype=np.uint32)
        within = np.ones(len(codes), dtype=bool)
        within[starts + lengths] = False
        codes[within] = points("".join(texts))
        for first, _, _ in self._shared(codes):
            repeats[int(np.searchsorted(starts, first, "right")) - 1] = True
        return repeats

    def _shared(self, codes: Points) -> list[tuple[int, int, int]]:
        """Where every shared run begins and ends, and where among the known: the leftmost first, of these the longest,
        of these the first that was known.
        """
        windows = hashes(codes, self._window, _BASE)
        maybe = np.flatnonzero(self._begins[windows >> self._shift])
        low, high = (np.searchsorted(self._hashes, windows[maybe], side) for side in ("left", "right"))
        hits = high - low
        if not hits.any():  # as of most texts
            return []
        at = np.repeat(maybe, hits)
        place = self._places[np.arange(len(at)) + np.repeat(low - (np.cumsum(hits) - hits), hits)]
        for far in range(self._window):  # a hash alone decides nothing
            same = codes[at + far] == self._codes[place + far]
            at, place = at[same], place[same]
        if not len(at):
            return []
        # Of what a run has beside a window of its own, half or more lies on one side: most chance hits end here.
        half = (self.least - self._window + 1) // 2
        left, right = self._sides(codes, at, place, at + self._window, half)
        at, place = at[(left == half) | (right == half)], place[(left == half) | (right == half)]
        # Windows of one run lie equally far from their likes among the known, and next to each other.
        order = np.lexsort((at, place - at))
        at, place = at[order], place[order]
        new = np.ones(len(at) + 1, dtype=bool)
        new[1:-1] = (np.diff(place - at) != 0) | (np.diff(at) != self._apart)
        first, known, last = at[new[:-1]], place[new[:-1]], at[new[1:]] + self._window
        before, after = self._sides(codes, first, known, last, self._apart - 1)
        first, known, last = first - before, known - before, last + after
        long = last - first >= self.least
        runs = zip(first[long].tolist(), last[long].tolist(), known[long].tolist(), strict=True)
        return sorted(runs, key=lambda run: (run[0], -run[1], run[2]))

    def _sides(
        self, codes: Points, first: _Places, known: _Places, last: _Places, most: int
    ) -> tuple[_Places, _Places]:
        """How far each shared stretch goes on to the left and to the right, `most` characters at most."""
        left = self._grown(codes, first - 1, known - 1, range(0, -most, -1))
        return left, self._grown(codes, last, known + last - first, range(most))

    def _grown(self, codes: Points, at: _Places, place: _Places, steps: range) -> _Places:
        grown = np.zeros(len(at), dtype=np.int64)
        going = np.ones(len(at), dtype=bool)
        for far in steps:
            going &= (at + far >= 0) & (at + far < len(codes))
            going[going] = codes[at[going] + far] == self._codes[place[going] + far]
            grown += going
        return grown
