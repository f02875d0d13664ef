"""Runs of characters by which a text is known wherever it was copied to: without keeping the text.

A run is LENGTH characters; of each the hash is kept, with a secret base that ends with the erasure. A text that has a
run of the erased texts which no other row has is a trace of them. White space of any kind counts as a space: a log or a
table may have put one in the place of another.
"""

import re
import secrets
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.core.overlap import Hashes, Points, hashes, points

LENGTH = 8
QUOTE = 15  # characters in a row: whoever has as many has quoted

_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|([\"/nrt]))")
_MEANT = {"n": "\n", "r": "\r", "t": "\t"}
_IS_SPACE = np.zeros(0x3002, bool)  # by code point; the last one stands for all above
_IS_SPACE[[ord(space) for space in "\t\n\r\x0b\x0c\xa0\u3000"]] = True
_BITS = 22  # of the table that answers most questions at once
_END = "\0"  # stands between two texts, and in none of ours


class Runs:
    """The runs of some texts, of which `elsewhere` says which others have as well.

    `values` are sorted. `quotable` are those of what people wrote. `shared` are those that other rows of any kind have,
    `common` those that posts and dialogues have which stay: what is made from such a one quotes it, and not the erased.
    """

    def __init__(
        self,
        values: Hashes,
        base: int,
        quotable: NDArray[np.bool_] | None = None,
    ) -> None:
        self.values, self.base = values, base
        self.quotable = np.zeros(len(values), bool) if quotable is None else quotable
        self.shared = np.zeros(len(values), bool)
        self.common = np.zeros(len(values), bool)
        self._likely = np.zeros(1 << _BITS, bool)
        self._likely[_upper(values)] = True

    @classmethod
    def of(cls, written: Iterable[str], made: Iterable[str] = ()) -> "Runs":
        """Of what people wrote and of what was made from it, under a base of their own."""
        base = secrets.randbits(64) | 1
        quotable, others = (_within(_points(_END.join(texts)), base) for texts in (written, made))
        values = np.unique(np.concatenate([quotable, others]))
        return cls(values, base, np.isin(values, quotable))

    @property
    def traces(self) -> Hashes:
        """Those that nobody else has."""
        return self.values[~self.shared]

    def elsewhere(self, texts: Sequence[str | None], *, source: bool) -> None:
        """Other rows have these texts; `source`: rows of posts or dialogues as they came."""
        places, _ = self._met(texts)
        self.shared[places] = True
        if source:
            self.common[places] = True

    def quoting(self, texts: Sequence[str | None]) -> NDArray[np.int64]:
        """The positions of those texts that have QUOTE characters in a row of ours, which are not common to others."""
        places, at = self._met(texts)
        places, at = places[self.quotable[places]], at[self.quotable[places]]
        if not len(at):
            return np.empty(0, np.int64)
        runs = np.split(np.arange(len(at)), np.flatnonzero(np.diff(at) != 1) + 1)
        wanted = QUOTE - LENGTH + 1
        starts = [at[run[0]] for run in runs if len(run) >= wanted and not self.common[places[run]].all()]
        return np.unique(_owners(texts, np.array(starts, np.int64)))

    def traced(self, text: str) -> bool:
        """Whether a text has a run that no other row has."""
        return bool(len(self.found(text)))

    def found(self, text: str) -> NDArray[np.int64]:
        """Where in a text the runs begin that no other row has."""
        if len(text) < LENGTH:
            return np.empty(0, np.int64)
        places, at = self._met([text])
        return at[~self.shared[places]]

    def _met(self, texts: Sequence[str | None]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which of our runs the texts have, and where, in characters of all texts joined."""
        windows = hashes(_points(_END.join(text or "" for text in texts)), LENGTH, self.base)
        at = np.flatnonzero(self._likely[_upper(windows)])
        places = np.searchsorted(self.values, windows[at])
        places[places == len(self.values)] = 0
        met = self.values[places] == windows[at] if len(self.values) else np.zeros(len(at), bool)
        return places[met], at[met]


def plain(body: bytes) -> str:
    """What a JSON body says, escaped characters as themselves, however often they were escaped."""
    text = _ESCAPED.sub(
        lambda code: chr(int(code[1], 16)) if code[1] else _MEANT.get(code[2], code[2]), body.decode("utf-8", "replace")
    )
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _points(text: str) -> Points:
    """The code points of a text, white space of any kind as a space."""
    found = points(text)
    return np.where(_IS_SPACE[np.minimum(found, len(_IS_SPACE) - 1)], np.uint32(ord(" ")), found)


def _within(points: Points, base: int) -> Hashes:
    """The hashes of the runs that lie within one text."""
    ends = np.concatenate([[0], np.cumsum(points == 0)])
    n = max(len(points) - LENGTH + 1, 0)
    within: Hashes = hashes(points, LENGTH, base)[ends[LENGTH : LENGTH + n] == ends[:n]]
    return within


def _upper(hashes: Hashes) -> NDArray[np.int64]:
    return (hashes >> np.uint64(64 - _BITS)).astype(np.int64)


def _owners(texts: Sequence[str | None], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which text each character belongs to."""
    ends = np.cumsum([len(text or "") + len(_END) for text in texts])
    return np.searchsorted(ends, starts, side="right")
