"""How fast one model is asked: requests and tokens a minute, and how many at once, less when the vendor is flooded.

The window is that of one process: so one refresh is at work at a time in a home, and in Dagster the stages that ask
share a pool of one slot.
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


class Window:
    """In any period (seconds), wherever it begins, no more than `requests` pass, and no more than `tokens` with them;
    None: there is no such limit. First come, first served.

    (A leaky bucket that is as large as the limit lets through nearly twice the limit in its first period; a smaller one
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
    """A place in flight. `storm`: for `Limits.flooded`. `used`: whether a request left from it."""

    storm: int
    used: bool = True


class Limits:
    """All limits of one model, in this process alone: a window of a minute (None: the vendor names no such limit), and
    how many requests are in flight. The latter follows the vendor: halved once per storm of 429 (all those to requests
    that were sent before the halving), one more after every GROWS_AFTER good answers, between 1 and `most`.
    """

    def __init__(self, most: int, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        from anyio import CapacityLimiter

        self.most = self.limit = most
        self.storm = 0  # how many there were
        self._slots = CapacityLimiter(most)
        self._window = Window(requests_per_minute, tokens_per_minute, period=_MINUTE)
        self._grown = 0  # good answers since the limit last moved
        self._good = self._bad = 0.0

    @asynccontextmanager
    async def place(self, tokens: int) -> AsyncIterator[Place]:
        """A place in flight for a request of about so many tokens; one that is not `used` takes nothing of a minute."""
        async with self._slots:
            place = Place(self.storm)
            passed = await self._window.enter(tokens)
            try:
                yield place
            finally:
                if not place.used:
                    self._window.give_back(passed)

    def flooded(self, storm: int) -> None:
        """A request that left after so many storms got a 429."""
        if storm != self.storm:
            return
        self._bad += 1
        if self._bad >= STORM_AT_LEAST and self._bad >= STORM_SHARE * (self._good + self._bad):
            self.storm += 1
            self._good = self._bad = 0.0
            self._move(max(1, self.limit // 2))
        self._forget()

    def answered(self) -> None:
        """A request got its answer."""
        self._good += 1
        self._grown += 1
        if self._grown >= GROWS_AFTER and self.limit < self.most:
            self._move(self.limit + 1)
        self._forget()

    def _move(self, limit: int) -> None:
        self._grown = 0
        self.limit = self._slots.total_tokens = limit

    def _forget(self) -> None:
        if self._good + self._bad > _REMEMBERED:
            self._good, self._bad = self._good / 2, self._bad / 2
