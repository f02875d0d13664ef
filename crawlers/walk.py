"""The walk down one list, newest first: which of its posts are to be fetched, and when there is nothing left to find.

No Scrapy here: pages of a list go in, the posts to fetch come out, and what became of every other is counted.

==============  ================================================================================
fate            meaning
==============  ================================================================================
``fetch``       it is to be fetched; the spider says what came of that: fetched, cut, gone, outside, lost or
                unread_before, and of those that are still to be as it ends, left
``had``         it stands in the journal of this job already
``unchanged``   an earlier crawl had it, and no answer has come since
``outside``     it was written on a day that is not in the window, or before `since_id`
``takedown``    its writer wants it gone: never asked for
``sampled_out`` only a share of the posts was asked for
``repeated``    it stood on an earlier page of the list too: posts move down as new ones come
==============  ================================================================================
"""

from collections import Counter
from collections.abc import Mapping
from datetime import date

from crawlers.options import Known, Options
from crawlers.records import Listed, ListPage
from crawlers.window import Days, day_of
from schemas.ids import unit_interval


class Walk:
    """One list of one crawl.

    A list in the order of the last answer ends where all last answers of a page came before the window: no post that
    was written later can stand below. On a list in the order of posting (`ordered`) one post stands for a page: where
    the last post of a page is newer than the window, all of them are; where the first is older, all of them are. So
    pages outside the window cost one post, not ten.
    """

    def __init__(
        self,
        options: Options,
        had: Mapping[str, Known],
        fates: Counter[str],
        listed: dict[str, Listed],
        *,
        ordered: bool,
    ) -> None:
        self._options = options
        self._window = options.window
        self._had = had
        self._fates = fates
        self._listed = listed
        self._ordered = ordered
        # Still in front of the window; and whether something older than it has been met.
        self._ahead = ordered and self._window.last < day_of(options.clock())
        self._behind = False
        self._days: dict[str, Days] = {}  # when the unpinned posts of this page were written
        self._places: dict[str, Days] = {}  # by what they are sorted: the same, or when the last answer came
        self._open: set[str] = set()
        self._held: list[Listed] = []
        self._probe: str | None = None
        self._since_reached = False
        self.number = 0
        self.next_url: str | None = None
        self._read_urls: set[str] = set()

    def read(self, page: ListPage, url: str) -> list[Listed]:
        """Takes a page of the list; gives the posts that are to be fetched now."""
        self.number += 1
        self._read_urls.add(url)
        self.next_url = page.next_url if page.next_url not in self._read_urls else None
        self._days, self._places = {}, {}
        self._held = []
        self._probe = None
        wanted: list[Listed] = []
        for post in page.posts:
            days, fate = self._judge(post)
            self._fates[fate] += 1
            if fate == "fetch":
                wanted.append(post)
            if not post.pinned:
                self._days[post.source_id] = days
                self._places[post.source_id] = days if self._ordered else _active(post)
        unpinned = [post for post in page.posts if not post.pinned]
        self._since_reached = (
            self._ordered and bool(unpinned) and all(self._before_since(post.source_id) for post in unpinned)
        )
        self._note()
        return self._start(wanted, unpinned)

    def settle(self, source_id: str, day: date | None) -> list[Listed]:
        """Takes the day of a post that was fetched, None where it could not be read; gives more posts to fetch."""
        self._open.discard(source_id)
        if day is not None and source_id in self._days:
            self._days[source_id] = Days(day, day)
            if self._ordered:
                self._places[source_id] = self._days[source_id]
            self._note()
        if source_id != self._probe:
            return []
        self._probe = None
        held, self._held = self._held, []
        if day is not None and (day > self._window.last if self._ahead else day < self._window.first):
            self._fates["fetch"] -= len(held)
            self._fates["outside"] += len(held)
            return []
        self._open.update(post.source_id for post in held)
        return held

    @property
    def settled(self) -> bool:
        """Whether every post of the page that was to be fetched has come, or will not."""
        return not self._open and not self._held

    @property
    def behind(self) -> bool:
        """Whether something older than the window has been met."""
        return self._behind

    @property
    def ended_first(self) -> bool:
        """Whether the list came to its last page before it came to anything older than the window.

        It holds no more, or the site shows no more of it.
        """
        at_its_end = self.number > 0 and self.settled and self.next_url is None
        return at_its_end and not self._behind and not self._since_reached

    @property
    def ended(self) -> bool:
        """Whether the list holds nothing more: its last page, or a whole page older than the window or `since_id`."""
        known = [days for days in self._places.values() if days.last is not None or days.first is not None]
        older = bool(known) and all(self._window.surely_older(days) for days in known)
        return self.next_url is None or older or self._since_reached

    def _start(self, wanted: list[Listed], unpinned: list[Listed]) -> list[Listed]:
        if len(wanted) > 1 and unpinned and (self._ahead or (self._ordered and self._behind)):
            probe = unpinned[-1] if self._ahead else unpinned[0]
            if probe in wanted and self._days[probe.source_id] == Days():
                self._probe = probe.source_id
                self._held = [post for post in wanted if post is not probe]
                self._open = {probe.source_id}
                return [probe]
        self._open = {post.source_id for post in wanted}
        return wanted

    def _note(self) -> None:
        """Where the walk stands, by what is known of the page's places."""
        for days in self._places.values():
            if self._window.surely_older(days):
                self._ahead, self._behind = False, True
            elif days.first is not None and not self._window.surely_newer(days):
                self._ahead = False

    def _judge(self, post: Listed) -> tuple[Days, str]:
        days = self._days_of(post)
        if post.source_id in self._listed:
            return days, "repeated"
        self._listed[post.source_id] = post
        return days, self._fate(post, days)

    def _fate(self, post: Listed, days: Days) -> str:
        options = self._options
        known = options.seen.get(post.source_id)
        fates = {
            "takedown": post.source_id in options.takedown,
            "had": post.source_id in self._had,
            "outside": self._outside(days) or self._before_since(post.source_id),
            "unchanged": known is not None
            and not known.unread
            and known.fingerprint is not None
            and known.fingerprint == post.fingerprint,
            "sampled_out": options.sample < 1 and unit_interval(options.site.name, post.source_id) >= options.sample,
        }
        return next((fate for fate, holds in fates.items() if holds), "fetch")

    def _outside(self, days: Days) -> bool:
        return self._window.surely_older(days) or self._window.surely_newer(days)

    def _days_of(self, post: Listed) -> Days:
        known = self._had.get(post.source_id) or self._options.seen.get(post.source_id)
        if known is not None and known.day is not None:
            return Days(known.day, known.day)
        if post.posted is not None:
            return Days.of(post.posted)
        # Where only the last answer is dated, the post was written then, or before.
        return Days(None, _active(post).last)

    def _before_since(self, source_id: str) -> bool:
        since = self._options.since_id
        return since is not None and source_id.isdecimal() and int(source_id) <= since


def _active(post: Listed) -> Days:
    return Days() if post.active is None else Days.of(post.active)
