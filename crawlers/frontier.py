"""The frontier of one list, newest first: which of its posts are to be fetched, and when it holds nothing more. Where
no list reaches a day, the ids of posts are walked over instead (`IdSearch`, `page_of_ids`).

No Scrapy here: pages of a list go in, the posts to fetch come out, and the outcome of every other is counted.

``had`` stands in the journal of this job already; ``unchanged`` was fetched by an earlier crawl, and no answer has come
since; ``outside`` was written on a day outside the window; ``takedown``: its writer wants it gone; ``repeated`` stood
on an earlier page of the list: posts move down. ``fetch`` becomes fetched, cut, gone, outside, lost or unread_before
in the spider, and what remains at the end is left.

Ids ascend with the time of posting. So of a wide range the end of a window is looked for by halving, with a few posts
that are there; from it the walk goes down, as down a list, until posts are older than the window.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from itertools import pairwise

from crawlers.dates import Days, Window, day_of
from crawlers.options import Known, Options
from crawlers.records import Listed, ListPage

A_PAGE = 10  # ids, of which one is asked for first where the others may be outside the window
_TRIES = 50  # ids in a row without a post before the search is given up


class ListFrontier:
    """The frontier of one list of one crawl.

    A list in the order of the last answer ends where all last answers of a page came before the window: no post that
    was written later can stand below. On a list in the order of posting (`ordered`) one post stands for a page: where
    the last post of a page is newer than the window, all of them are; where the first is older, all of them are. So
    pages outside the window cost one post, not ten.

    `outcomes` and `listed` are shared by the lists of a crawl; `had` are the posts of its journal.
    """

    def __init__(
        self,
        options: Options,
        had: Mapping[str, Known],
        outcomes: Counter[str],
        listed: dict[str, Listed],
        *,
        ordered: bool,
    ) -> None:
        self._options = options
        self._window = options.window
        self._had = had
        self._outcomes = outcomes
        self._listed = listed
        self._ordered = ordered
        # Whether the list is still newer than the window.
        self._ahead = ordered and self._window.last < day_of(options.clock())
        self._days: dict[str, Days] = {}  # when the unpinned posts of this page were written
        self._sort_days: dict[str, Days] = {}  # by what they are sorted: the same, or when the last answer came
        self._open: set[str] = set()  # requested, and not settled
        self._held: list[Listed] = []  # to be requested once the probe has come
        self._probe: str | None = None
        self._read_urls: set[str] = set()
        self._ids: set[str] = set()  # of all its posts
        self._n_posts: int | None = None
        self.number = 0
        self.next_url: str | None = None
        self.counted = False  # whether nothing links the next page: it may not be there
        self.behind = False  # whether anything older than the window has been met

    def read(self, page: ListPage, url: str) -> list[Listed]:
        """Takes a page of the list; gives the posts that are to be fetched now."""
        self.number += 1
        self._read_urls.add(url)
        ids = {post.source_id for post in page.posts}
        again = self.counted and ids <= self._ids  # a site shows its first page for a number that it does not have
        self._ids |= ids
        self._n_posts = self._n_posts if page.n_posts is None else page.n_posts
        self.next_url = None if again or page.next_url in self._read_urls else page.next_url
        self.counted = page.counted
        self._days, self._sort_days, self._held, self._probe = {}, {}, [], None
        wanted: list[Listed] = []
        for post in page.posts:
            days = self._days_of(post)
            outcome = self._judge(post, days)
            self._outcomes[outcome] += 1
            if outcome == "fetch":
                wanted.append(post)
            if not post.pinned:
                self._days[post.source_id] = days
                self._sort_days[post.source_id] = days if self._ordered else _active(post)
        unpinned = [post for post in page.posts if not post.pinned]
        self._locate()
        return self._start(wanted, unpinned)

    def end(self) -> None:
        """Takes that there is no next page after all."""
        self.next_url = None

    def settle(self, source_id: str, day: date | None) -> list[Listed]:
        """Takes the day of a post that was fetched, None where it could not be read; gives more posts to fetch."""
        self._open.discard(source_id)
        if day is not None and source_id in self._days:
            self._days[source_id] = Days(day, day)
            if self._ordered:
                self._sort_days[source_id] = self._days[source_id]
            self._locate()
        if source_id != self._probe:
            return []
        self._probe = None
        held, self._held = self._held, []
        if day is not None and (day > self._window.last if self._ahead else day < self._window.first):
            self._outcomes["fetch"] -= len(held)
            self._outcomes["outside"] += len(held)
            return []
        self._open.update(post.source_id for post in held)
        return held

    @property
    def settled(self) -> bool:
        """Whether every post of the page that was to be fetched has come, or will not."""
        return not self._open and not self._held

    @property
    def ended_first(self) -> bool:
        """Whether the list ended before anything older than the window: it holds, or the site shows, no more."""
        return self.number > 0 and self.settled and self.next_url is None and not self.behind

    @property
    def whole(self) -> tuple[int, int]:
        """How many posts a list states that was read from end to end, and how many it had; zeros for any other."""
        return (self._n_posts, len(self._ids)) if self.ended_first and self._n_posts is not None else (0, 0)

    @property
    def ended(self) -> bool:
        """Whether the list holds nothing more: its last page, or a whole page older than the window."""
        known = [days for days in self._sort_days.values() if days != Days()]
        older = bool(known) and all(self._window.surely_older(days) for days in known)
        return self.next_url is None or older

    def _start(self, wanted: list[Listed], unpinned: list[Listed]) -> list[Listed]:
        if len(wanted) > 1 and unpinned and self._ordered and (self._ahead or self.behind):
            probe = unpinned[-1] if self._ahead else unpinned[0]
            if probe in wanted and self._days[probe.source_id] == Days():
                self._probe = probe.source_id
                self._held = [post for post in wanted if post is not probe]
                self._open = {probe.source_id}
                return [probe]
        self._open = {post.source_id for post in wanted}
        return wanted

    def _locate(self) -> None:
        """Updates whether the list is ahead of the window or behind it, by what is known of the page."""
        for days in self._sort_days.values():
            if self._window.surely_older(days):
                self._ahead, self.behind = False, True
            elif days.first is not None and not self._window.surely_newer(days):
                self._ahead = False

    def _judge(self, post: Listed, days: Days) -> str:
        if post.source_id in self._listed:
            return "repeated"
        self._listed[post.source_id] = post
        known = self._options.seen.get(post.source_id)
        if post.source_id in self._options.takedown:
            return "takedown"
        if post.source_id in self._had:
            return "had"
        if self._window.surely_older(days) or self._window.surely_newer(days):
            return "outside"
        if post.fingerprint is not None and known and known.fingerprint == post.fingerprint and not known.unread:
            return "unchanged"
        return "fetch"

    def _days_of(self, post: Listed) -> Days:
        known = self._had.get(post.source_id) or self._options.seen.get(post.source_id)
        if known is not None and known.day is not None:
            return Days(known.day, known.day)
        if post.posted is not None:
            return Days.of(post.posted)
        # Where only the last answer is dated, the post was written then, or before.
        return Days(None, _active(post).last)


def _active(post: Listed) -> Days:
    return Days() if post.active is None else Days.of(post.active)


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
