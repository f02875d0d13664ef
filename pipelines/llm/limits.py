"""How fast one model is asked: requests and tokens a minute, and how many at once, less when the vendor is flooded.

The window is that of one process. Two processes that ask one vendor together are held by its 429 alone. So one
refresh is at work at a time in a home, and in Dagster the stages that ask share a pool of one slot.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

# All ours. After so many good answers one more request may be in flight. A storm is when at least so many, and this
# share, of about the last so many answers are 429: a few of them come from a host that keeps several queues, and to
# slow down for each would end at one request at a time.
GROWS_AFTER = 20
STORM_AT_LEAST = 3
STORM_SHARE = 1 / 3
_REMEMBERED = 32
_MINUTE = 60.0
_LEAST_WAIT = 1e-4  # seconds: a sum of floats may fall short of a period by less


class Concurrency:
    """A semaphore whose size follows the vendor: halved once per storm of 429 (all those to requests that were sent
    before the halving), one more after every GROWS_AFTER good answers, between 1 and `most`.
    """

    def __init__(self, most: int) -> None:
        self.most = self.limit = most
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
        """A request that entered after `storm` got a 429."""
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


class Window:
    """In any period (seconds), wherever it begins, no more than `requests` pass, and no more than `tokens` with them;
    None: there is no such limit. First come, first served.

    What has passed is remembered for a period, so that a host is asked as fast as it allows, from the first moment. (A
    leaky bucket that is as large as the limit lets through nearly twice the limit in its first period; a smaller one
    cannot hold a long text.)
    """

    def __init__(
        self,
        requests: int | None,
        tokens: int | None,
        *,
        period: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._requests, self._tokens, self._period = requests, tokens, period
        self._clock, self._sleep = clock, sleep
        self._passed: deque[tuple[float, int]] = deque()  # when, and how many tokens
        self._turn = asyncio.Lock()

    async def enter(self, tokens: int) -> tuple[float, int]:
        """Waits until one more request of so many tokens may leave; what is greater than the limit passes alone. Gives
        what `give_back` needs for one that did not leave after all.
        """
        if self._requests is None and self._tokens is None:
            return self._clock(), 0
        if self._tokens is not None:
            tokens = min(tokens, self._tokens)
        async with self._turn:
            while (wait := self._wait(tokens)) > 0:
                await self._sleep(wait)
            self._passed.append((self._clock(), tokens))
            return self._passed[-1]

    def give_back(self, passed: tuple[float, int]) -> None:
        """Forgets a request that never left."""
        if passed in self._passed:
            self._passed.remove(passed)

    def _wait(self, tokens: int) -> float:
        """Seconds until the oldest of those in the way is a period old; 0 where none is in the way."""
        now = self._clock()
        while self._passed and now - self._passed[0][0] >= self._period:
            self._passed.popleft()
        full = self._requests is not None and len(self._passed) >= self._requests
        if full or (self._tokens is not None and sum(n for _, n in self._passed) + tokens > self._tokens):
            return max(self._passed[0][0] + self._period - now, _LEAST_WAIT)
        return 0.0


@dataclass(slots=True)
class Place:
    """A place in flight. `storm`: for `Concurrency.flooded`. `used`: whether a request left from it."""

    storm: int
    used: bool = True


class Limits:
    """All limits of one model, in this process alone. None: the vendor names no such limit."""

    def __init__(self, concurrency: int, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        self.concurrency = Concurrency(concurrency)
        self._window = Window(requests_per_minute, tokens_per_minute, period=_MINUTE)

    @asynccontextmanager
    async def place(self, tokens: int) -> AsyncIterator[Place]:
        """A place in flight for a request of about so many tokens; one that is not `used` takes nothing of a minute."""
        place = Place(await self.concurrency.enter())
        try:
            passed = await self._window.enter(tokens)
            try:
                yield place
            finally:
                if not place.used:
                    self._window.give_back(passed)
        finally:
            self.concurrency.leave()
