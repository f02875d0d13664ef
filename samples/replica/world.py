"""What there is on the site at a moment: a clock, and the posts and answers that have appeared by it.

Every post and answer has its time, and appears, with the next free number, when the clock reaches it. So the numbers
ascend with time as on the real sites, and a late answer is nothing special.
"""

import heapq
import random
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from samples.replica.posts import Answer, Post, invent


class World:
    """Posts and answers up to the clock. Not for threads: the server is one loop."""

    def __init__(
        self, posts: Iterable[Post], now: datetime | None = None, *, invented: int = 0, days: float = 14, seed: int = 0
    ) -> None:
        """A site with `posts` and `invented` more over the `days` before `now`; a given `now` (aware) stands still."""
        self.seed = seed
        self.version = 0
        self._still = now is not None
        self._at = (now or datetime.now(UTC)).astimezone(UTC)
        self._since = time.monotonic()
        self._events: list[tuple[datetime, int, Post, Answer | None]] = []
        self._n_events = self._n_answers = self._n_invented = 0
        self._by_number: list[Post] = []
        self._orders: dict[str, tuple[int, Sequence[Post]]] = {}
        start = self._at
        for post in posts:
            self.add(post)
        for _ in range(invented):
            # From the index alone, not from how many there are: more posts move none.
            share = random.Random(f"{seed}\x1ftime\x1f{self._n_invented}").random()
            self.add_invented(start - timedelta(days=days * share, seconds=1))
        self.advance()

    def now(self) -> datetime:
        """The clock, aware UTC."""
        return self._at if self._still else self._at + timedelta(seconds=time.monotonic() - self._since)

    def add(self, post: Post) -> None:
        """`post` and its answers appear when their time has come."""
        self._push(post.posted_at, post, None)
        for answer in post.coming:
            # An answer never appears before its post, whatever the file says.
            self._push(max(answer.posted_at, post.posted_at), post, answer)
        post.coming = []

    def add_invented(self, posted_at: datetime) -> None:
        """One more invented post, whose answers follow it."""
        self.add(invent(self.seed, self._n_invented, posted_at))
        self._n_invented += 1

    def advance(self) -> None:
        """Shows what has come by now."""
        now = self.now()
        while self._events and self._events[0][0] <= now:
            _, _, post, answer = heapq.heappop(self._events)
            if answer is None:
                self._by_number.append(post)
                post.number = len(self._by_number)
            else:
                self._n_answers += 1
                answer.number = self._n_answers
                post.answers.append(answer)
            self.version += 1

    def post(self, number: int) -> Post | None:
        """The post with this number, None where there is none (yet)."""
        return self._by_number[number - 1] if 0 < number <= len(self._by_number) else None

    def newest(self) -> Sequence[Post]:
        """All posts, newest first."""
        return self._order("newest", lambda: self._by_number[::-1])

    def most_active(self) -> Sequence[Post]:
        """All posts, the one with the latest post or answer first: how forums order their lists."""
        return self._order(
            "active", lambda: sorted(self._by_number, key=lambda post: (post.active_at, post.number), reverse=True)
        )

    def _order(self, name: str, make: Callable[[], Sequence[Post]]) -> Sequence[Post]:
        version, order = self._orders.get(name, (-1, ()))
        if version != self.version:
            order = make()
            self._orders[name] = (self.version, order)
        return order

    def _push(self, at: datetime, post: Post, answer: Answer | None) -> None:
        self._n_events += 1
        heapq.heappush(self._events, (at, self._n_events, post, answer))
