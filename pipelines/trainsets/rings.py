"""Draws that a new row moves as few of as can be: consistent hashing (Karger et al., STOC 1997).

Items stand on a circle, each at a place that follows from its id alone. Who draws starts somewhere on it and takes the
first item onwards that fits. An item that comes is drawn by those alone who would have passed it, one that goes is
missed by those alone who drew it: of n items about 1/n of all draws move. Some items are drawn more often than others,
as the gaps before them are wider.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

from schemas.ids import unit_interval

Item = TypeVar("Item")


class Drawn(NamedTuple, Generic[Item]):
    """An item, and how far it was from where the draw began, 0 … 1."""

    distance: float
    item: Item


class Ring(Generic[Item]):
    """Items on a circle; `salt` names it, so that the same items stand elsewhere on another one."""

    def __init__(self, items: Iterable[tuple[str, Item]], *salt: str | int) -> None:
        placed = [(unit_interval(*salt, item_id), item_id, item) for item_id, item in items]
        placed.sort(key=itemgetter(0, 1))
        self._places = [place for place, _, _ in placed]
        self._items = [item for _, _, item in placed]

    def __len__(self) -> int:
        return len(self._items)

    def draw(self, start: float, fits: Callable[[Item], bool]) -> Drawn[Item] | None:
        """The first item from `start` (0 … 1) onwards that fits; None where none does."""
        first = bisect_left(self._places, start)
        for number in range(first, first + len(self._items)):
            item = self._items[number % len(self._items)]
            if fits(item):
                return Drawn((self._places[number % len(self._items)] - start) % 1.0, item)
        return None
