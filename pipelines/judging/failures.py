"""When a judge has failed too often to go on: rewards that are missing teach nothing, and look like low ones.

A refused text is no failure: the vendor's filter took exception to what was said, or it is longer than the model reads.
That is an answer about one text. It is kept in the ledger and comes again with the same row, so a run that stopped at
it would stop there for ever.
"""

from collections import deque
from math import inf, log
from typing import Literal, NamedTuple

Outcome = Literal["judged", "failed", "refused"]

# All ours. An outage is more than half of the last judgements; a judge that is much worse than it should be shows in
# many, and one that is a little worse in all of them.
LATELY, LONG = 20, 1000
OUTAGE = 0.5
# From how many judgements on. A host that gives no answers at all says so itself, with its name, after eight.
LEAST = 10
# More than this share refused, and the run learns from a part of its rows alone.
MOST_REFUSED = 0.5
# How unlikely so many of them must be at the limit: a long run is looked at after each of 10⁵ judgements.
CHANCE = 1e-6


class Stop(NamedTuple):
    """Why nothing more is to be judged, and what to do."""

    what: str
    remedy: str


class Failures:
    """Counts judgements, and tells when it is enough."""

    def __init__(self, limit: float) -> None:
        """`limit`: the share of failures that is borne, 0–1, among the judgements that were not refused."""
        self.limit = limit
        self.asked = self.failed = self.refused = 0
        self._lately, self._long, self._all, self._refused = _Last(LATELY), _Last(LONG), _Last(None), _Last(LONG)

    def count(self, outcome: Outcome) -> None:
        """One more judgement."""
        self.asked += 1
        self.failed += outcome == "failed"
        self.refused += outcome == "refused"
        self._refused.add(outcome == "refused")
        if outcome != "refused":
            for last in (self._lately, self._long, self._all):
                last.add(outcome == "failed")

    @property
    def stop(self) -> Stop | None:
        """Why to stop, None for going on."""
        windows = [self._long, self._all]
        if self._lately.hits > OUTAGE * self._lately.of:
            windows.insert(0, self._lately)
        if (last := next((one for one in windows if one.above(self.limit)), None)) is not None:
            return Stop(
                f"the judge failed at {last.hits} of the last {last.of} answers, more than {100 * self.limit:g}%",
                "look at the judge (gongqing ledger), then run the same command again: training goes on from its last "
                "checkpoint",
            )
        if self._refused.above(MOST_REFUSED):
            return Stop(
                f"the judge refused {self._refused.hits} of the last {self._refused.of} texts, more than half: its "
                "vendor's filter, or too long for it",
                "the same texts would be refused again: take another judge (one that you serve yourself has no such "
                "filter), or a release without rows that show signs of risk ([prompts] allow_risk)",
            )
        return None


class _Last:
    """The last judgements, `most` of them or all, and how many of them were hits: failed, or refused."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._last: deque[bool] = deque()
        self.hits = self.of = 0

    def add(self, hit: bool) -> None:
        self.hits += hit
        self.of += 1
        if self._most is not None:
            self._last.append(hit)
            if self.of > self._most:
                self.hits -= self._last.popleft()
                self.of = self._most

    def above(self, limit: float) -> bool:
        """Whether the share is above the limit, by more than chance."""
        return self.of >= LEAST and surprise(self.hits, self.of, limit) > -log(CHANCE)


def surprise(hits: int, of: int, limit: float) -> float:
    """How surprising it is that so many are hits if each is one with the probability `limit`.

    −log of Chernoff's bound, P(at least so many) ≤ exp(−n·KL(share ‖ limit)): what it finds unlikely is. 0 for a share
    within the limit.
    """
    if hits <= limit * of:
        return 0.0
    if limit == 0:
        return inf
    misses = of - hits
    return hits * log(hits / (of * limit)) + (misses * log(misses / (of * (1 - limit))) if misses else 0.0)
