"""How fast one model is asked: requests and tokens a minute, and how many at once, less when the vendor is flooded.

The buckets are those of one process. Two processes that ask one vendor together are held by its 429 alone.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiolimiter import AsyncLimiter

# All ours. After so many good answers one more request may be in flight. A storm is when at least so many, and this
# share, of about the last so many answers are 429: a few of them come from a host that keeps several queues, and to
# slow down for each would end at one request at a time.
GROWS_AFTER = 20
STORM_AT_LEAST = 3
STORM_SHARE = 1 / 3
_REMEMBERED = 32
_MINUTE = 60.0


class Concurrency:
    """A semaphore whose size follows the vendor: halved once per storm of 429, one more after every GROWS_AFTER good
    answers, between 1 and `most` (additive increase, multiplicative decrease).

    To a storm belong all the 429 to requests that were sent before the halving: they tell what is known already.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = most
        self.in_flight = 0
        self._storm = 0
        self._grown = 0  # good answers since the limit last moved
        self._good = self._bad = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> int:
        """Waits for a place; gives the number of the storm that it was taken after."""
        if self.in_flight >= self.limit or self._waiting:
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            self._wake()
            try:
                await place  # who wakes us has counted us in
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self.leave()
                raise
        else:
            self.in_flight += 1
        return self._storm

    def leave(self) -> None:
        """Gives the place back."""
        self.in_flight -= 1
        self._wake()

    def flooded(self, storm: int) -> None:
        """A request that entered after `storm` was told to come back later."""
        if storm != self._storm:
            return
        self._bad += 1
        if self._bad >= STORM_AT_LEAST and self._bad >= STORM_SHARE * (self._good + self._bad):
            self._storm += 1
            self._grown = 0
            self._good = self._bad = 0.0
            self.limit = max(1, self.limit // 2)
        self._forget()

    def answered(self) -> None:
        """A request got its answer."""
        self._good += 1
        self._grown += 1
        if self._grown >= GROWS_AFTER and self.limit < self.most:
            self._grown = 0
            self.limit += 1
            self._wake()
        self._forget()

    def _forget(self) -> None:
        if self._good + self._bad > _REMEMBERED:
            self._good, self._bad = self._good / 2, self._bad / 2

    def _wake(self) -> None:
        while self._waiting and self.in_flight < self.limit:
            place = self._waiting.popleft()
            if not place.done():  # done: its task was cancelled
                self.in_flight += 1
                place.set_result(None)


class Limits:
    """All limits of one model. None for a bucket: the vendor names no such limit."""

    def __init__(self, concurrency: int, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        self.concurrency = Concurrency(concurrency)
        self._requests = AsyncLimiter(requests_per_minute, _MINUTE) if requests_per_minute else None
        self._tokens = AsyncLimiter(tokens_per_minute, _MINUTE) if tokens_per_minute else None

    @asynccontextmanager
    async def place(self, tokens: int) -> AsyncIterator[int]:
        """A place in flight for a request of about so many tokens; gives what `Concurrency.flooded` wants to know."""
        storm = await self.concurrency.enter()
        try:
            if self._requests is not None:
                await self._requests.acquire()
            if self._tokens is not None:
                # What is greater than a whole minute's worth waits for an empty bucket.
                await self._tokens.acquire(min(tokens, self._tokens.max_rate))
            yield storm
        finally:
            self.concurrency.leave()
