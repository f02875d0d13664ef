"""A walk over the ids of posts, for days that no list reaches: which ids are asked for, highest first.

Ids ascend with the time of posting. So of a wide range the end of a window is looked for by halving, with a few posts
that are there; from it the walk goes down, as down a list, until posts are older than the window.
"""

from collections.abc import Callable
from itertools import pairwise

from crawlers.dates import Days, Window
from crawlers.records import Listed, ListPage

A_PAGE = 10  # ids, of which one is asked for first where the others may be outside the window
_TRIES = 50  # ids in a row without a post before the search is given up


class IdSearch:
    """The end of the ids of a window in a range: from `stop` on, all posts are newer.

    It never lies below a post of the window: only a post that is newer moves it. A range that has too few posts to
    search in, and one in which a post is older than one before it, are walked from their end.
    """

    def __init__(self, ids: range, window: Window) -> None:
        self._ids, self._window = ids, window
        self._low, self.stop = ids.start, ids.stop
        self._tried = 0
        self._dated: dict[int, Days] = {}
        self._given_up = False

    @property
    def probe(self) -> int | None:
        """The id of the post to look at next; None where the search is over."""
        if self._given_up or self.stop - self._low <= A_PAGE:
            return None
        return (self._low + self.stop) // 2 + self._tried

    def take(self, days: Days | None) -> None:
        """Takes when the post of `probe` was written, None where there is none, or its page can not be read."""
        probe = self.probe
        assert probe is not None
        if days is None:
            self._tried += 1
            self._given_up = self._tried >= _TRIES or probe + 1 >= self.stop
            return
        self._tried = 0
        self._dated[probe] = days
        in_order = [self._dated[each] for each in sorted(self._dated)]
        if any(_is_older(later, earlier) for earlier, later in pairwise(in_order)):
            self.stop, self._given_up = self._ids.stop, True
        elif self._window.surely_newer(days):
            self.stop = probe
        else:
            self._low = probe + 1


def page_of_ids(ids: range, stop: int, url_of: Callable[[int], str]) -> ListPage:
    """The ids below `stop` as a page of a list; its next page is named by its own `stop`."""
    start = max(ids.start, stop - A_PAGE)
    posts = tuple(Listed(str(each), url_of(each)) for each in range(stop - 1, start - 1, -1))
    return ListPage(posts, str(start) if start > ids.start else None)


def _is_older(days: Days, than: Days) -> bool:
    return days.last is not None and than.first is not None and days.last < than.first
