"""When a judge has failed too often to go on: rewards that are missing teach nothing, and look like low ones."""

from collections import deque

# All ours: of how many judgements the share is taken, from how many on, and what never stops a run: one or two odd
# replies at its beginning.
WINDOW, LEAST_ASKED, LEAST_FAILED = 50, 10, 3


class Failures:
    """Counts judgements, and those among the last WINDOW that have failed."""

    def __init__(self, limit: float) -> None:
        """`limit`: the share of failures that is borne, 0–1."""
        self.limit = limit
        self.asked = self.failed = 0
        self._last: deque[bool] = deque(maxlen=WINDOW)

    def count(self, *, failed: bool) -> None:
        """One more judgement."""
        self.asked += 1
        self.failed += failed
        self._last.append(failed)

    @property
    def lately(self) -> tuple[int, int]:
        """How many of the last judgements have failed, and how many these are."""
        return sum(self._last), len(self._last)

    @property
    def too_many(self) -> bool:
        """Whether the share of failures is above the limit."""
        failed, of = self.lately
        return of >= LEAST_ASKED and failed >= LEAST_FAILED and failed > self.limit * of
