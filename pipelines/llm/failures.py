"""When answers have failed too often to go on: beyond a share, and by more than chance.

For the judge of a run of training (`pipelines.judge.service`) and for every stage that asks (`InvalidReplies`). A
refused text is no failure: it would be refused again, so a run that stopped at it would stop there every time.
"""

from collections import Counter, deque
from collections.abc import Iterable
from math import inf, log
from typing import Any, Literal, NamedTuple

from pipelines.errors import TooManyInvalid
from pipelines.llm.questions import ASKED_AGAIN, Reply

Outcome = Literal["judged", "failed", "refused"]

# All ours. An outage is more than half of the last judgements; a judge that is much worse than it should be shows in
# many, and one that is a little worse in all of them.
RECENT, LONG = 20, 1000
OUTAGE = 0.5
# From how many judgements on. A host that gives no answers at all says so itself, with its name, after eight.
LEAST = 10
# From how many replies to a stage on: a small table of odd texts is no reason to stop.
LEAST_OF_A_STAGE = 30
# More than this share refused, and the run learns from a part of its rows alone.
MOST_REFUSED = 0.5
# How unlikely so many of them must be at the limit: a long run is looked at after each of 10⁵ judgements.
CHANCE = 1e-6


class Excess(NamedTuple):
    """`hits` of the last `of` were `kind`: too many."""

    kind: Literal["failed", "refused"]
    hits: int
    of: int


class Failures:
    """Counts judgements, and says when to stop."""

    def __init__(self, limit: float, *, least: int = LEAST, in_time: bool = True) -> None:
        """`limit`: the share of failures that is allowed, 0–1, from `least` judgements on that were not refused.
        `in_time`: they come in the order in which they were made, so the last ones tell of now.
        """
        self.limit = limit
        self.asked = self.failed = self.refused = 0
        self._least, self._in_time = least, in_time
        self._recent, self._long, self._all = _Window(RECENT), _Window(LONG), _Window(None)
        self._refused = _Window(LONG if in_time else None)

    def count(self, outcome: Outcome) -> None:
        """One more judgement."""
        self.asked += 1
        self.failed += outcome == "failed"
        self.refused += outcome == "refused"
        self._refused.add(outcome == "refused")
        if outcome != "refused":
            for window in (self._recent, self._long, self._all):
                window.add(outcome == "failed")

    @property
    def excess(self) -> Excess | None:
        """Why to stop, None for going on: more than the limit failed, or more than half was refused."""
        if self._all.of >= self._least:
            windows = [self._long, self._all] if self._in_time else [self._all]
            if self._in_time and self._recent.hits > OUTAGE * self._recent.of:
                windows.insert(0, self._recent)
            for window in windows:
                if window.above(self.limit):
                    return Excess("failed", window.hits, window.of)
        if self.asked >= self._least and self._refused.above(MOST_REFUSED):
            return Excess("refused", self._refused.hits, self._refused.of)
        return None


class InvalidReplies:
    """Counts the replies that a stage gets, by model, and raises where too many of them are not answers.

    Invalid and cut short replies count; refused texts count apart. A reply that never came does not count: a host that
    is down says so itself, and such rows are asked for again.
    """

    def __init__(self, stage: str, limit: float, *, in_time: bool = False) -> None:
        """`limit` and `in_time` as in `Failures`: in a batch, or in the order of rows, they do not come in time."""
        self._stage, self._limit, self._in_time = stage, limit, in_time
        self._by_model: dict[str, Failures] = {}
        self._details: dict[tuple[str, str], Counter[str]] = {}

    def count(self, reply: Reply[Any]) -> None:
        """One more reply."""
        if reply.reason in ASKED_AGAIN:
            return
        model = reply.question.model
        if model not in self._by_model:
            self._by_model[model] = Failures(self._limit, least=LEAST_OF_A_STAGE, in_time=self._in_time)
        outcome: Outcome = "failed" if reply.may_come_right else "refused" if reply.is_of_the_text else "judged"
        self._by_model[model].count(outcome)
        if outcome != "judged":
            details = self._details.setdefault((model, outcome), Counter())
            details[reply.detail or str(reply.reason)] += 1

    def doubts(self, reply: Reply[Any]) -> bool:
        """Whether a reply is of the kind of which its model has given too many."""
        model = reply.question.model
        if model not in self._by_model or (excess := self._by_model[model].excess) is None:
            return False
        return reply.may_come_right if excess.kind == "failed" else reply.is_of_the_text

    def require(self, models: Iterable[str] | None = None) -> None:
        """Raises TooManyInvalid for the first of the models, all where none are named, that is beyond the limit."""
        wanted = self._by_model if models is None else [model for model in models if model in self._by_model]
        for model in wanted:
            if (excess := self._by_model[model].excess) is None:
                continue
            [(detail, _)] = self._details[model, excess.kind].most_common(1)
            failed = excess.kind == "failed"
            how = "are invalid after all repairs" if failed else "refuse the text, or cannot read it whole"
            limit = self._limit if failed else MOST_REFUSED
            raise TooManyInvalid(
                f"{model} gives no answers that can be used: {excess.hits} of the last {excess.of} replies to "
                f"questions of {self._stage} {how} (most often: {detail}), more than {100 * limit:g}%; "
                "nothing more is sent, and the table stays as it was",
                where=f"the model {model}",
                hint="look at what its host replies (gongqing ledger record FILE), and at model and base_url of the "
                "profile, then run the same command again: what was answered is kept, what was invalid is asked again. "
                "Where the model can do no better: another model, or a larger [llm] failures",
            )


class _Window:
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

    −log of Chernoff's bound, P(at least so many) ≤ exp(−n·KL(share ‖ limit)): it overstates no surprise. 0 for a share
    within the limit.
    """
    if hits <= limit * of:
        return 0.0
    if limit == 0:
        return inf
    misses = of - hits
    return hits * log(hits / (of * limit)) + (misses * log(misses / (of * (1 - limit))) if misses else 0.0)
