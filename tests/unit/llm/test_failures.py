"""When a judge has failed too often: an outage at once, a share above the limit soon, and bad luck never."""

from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from pipelines.errors import TooManyInvalid
from pipelines.judge.service import stop_reason
from pipelines.llm.failures import LEAST, LONG, RECENT, Failures, InvalidReplies, surprise
from pipelines.llm.prompts import Prompt
from pipelines.llm.questions import TOO_LONG, Provenance, Question, Reply

LONG_RUN = 64_000  # 1,000 steps of 16 prompts with 4 outputs
LIMIT = 0.05


def stopped(outcomes, limit=LIMIT, counts=None):
    """After how many outcomes it is enough; None: not at all."""
    counts = counts or Failures(limit)
    for n, outcome in enumerate(outcomes, 1):
        counts.count(outcome)
        if counts.excess:
            return n
    return None


def drawn(seed, rate, n, bad="failed"):
    draw = Random(seed)
    return (bad if draw.random() < rate else "judged" for _ in range(n))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("limit", [0.02, 0.5])
def test_long_runs_at_half_the_limit_are_never_stopped(limit):
    assert [stopped(drawn(seed, limit / 2, LONG_RUN), limit) for seed in range(5)] == [None] * 5


def test_twice_the_limit_stops_a_run_soon_and_a_little_more_than_it_in_the_end():
    assert max(stopped(drawn(seed, 2 * LIMIT, LONG_RUN)) for seed in range(20)) < 2 * LONG
    ends = [stopped(drawn(seed, 1.3 * LIMIT, LONG_RUN)) for seed in range(10)]
    assert LONG < min(ends) <= max(ends) < LONG_RUN / 3


@pytest.mark.parametrize("good", [0, LONG_RUN])
def test_an_outage_stops_a_run_within_20_judgements(good):
    counts = Failures(LIMIT)
    assert stopped(["judged"] * good, counts=counts) is None
    assert stopped(["failed"] * RECENT, counts=counts) == (RECENT // 2 + 1 if good else LEAST)


def test_refused_texts_are_no_failures():
    """One post in twelve shows signs of risk, and all its outputs are refused."""
    counts = Failures(LIMIT)
    group = ["refused"] * 8 + ["judged"] * 88
    assert stopped(group * 600, counts=counts) is None
    assert (counts.asked, counts.failed, counts.refused) == (57_600, 0, 4_800)


def test_a_judge_that_refuses_most_texts_stops_the_run_and_says_what_helps():
    counts = Failures(LIMIT)
    assert stopped(drawn(0, 0.7, LONG_RUN, "refused"), counts=counts) < LONG
    what, hint = stop_reason(counts.excess, LIMIT)
    assert "refused" in what
    assert "another judge" in hint
    assert "risk" in hint
    assert stopped(drawn(0, 0.4, LONG_RUN, "refused")) is None


@given(st.integers(1, 1000), st.floats(0, 1), st.floats(0, 1))
def test_what_is_found_unlikely_is(of, share, limit):
    hits = round(share * of)
    assert binom.sf(hits - 1, of, limit) <= exp(-surprise(hits, of, limit)) * (1 + 1e-9) + 1e-300


# Replies to a stage


def replies(*reasons, model="m"):
    """A reply for each reason; None: a value. A reason may have a detail behind a colon."""
    asked = Question("emotions", "r", Prompt("p", "1", "x"), {}, str, model)
    made = Provenance("openai", model, None, "p-1", "k")
    for reason in reasons:
        name, _, detail = (reason or "").partition(":")
        yield Reply(asked, None if reason else "x", made, reason=name or None, detail=detail or None)


def require(*some, limit=0.2, in_time=False):
    counts = InvalidReplies("emotions", limit, in_time=in_time)
    for reply in some:
        counts.count(reply)
    counts.require()


def test_thirty_replies_that_are_no_answers_end_a_stage_and_the_error_says_of_what_kind():
    bad = ["invalid_reply:missing:emotion"] * 20 + ["cut_short:300 tokens"] * 10
    require(*replies(*bad[:-1]), *replies(*[None] * 300, model="a"))
    with pytest.raises(TooManyInvalid, match="30 of the last 30 replies to questions of emotions") as caught:
        require(*replies(*[None] * 300, model="a"), *replies(*bad))  # one model of two is enough
    assert "(most often: missing:emotion), more than 20%" in caught.value.what
    assert caught.value.exit_code == 1


def test_what_is_of_the_text_ends_nothing_as_long_as_others_are_answered():
    for reason in ("refused:content_filter", f"cut_short:{TOO_LONG}"):
        require(*replies(*[reason, None] * 500), limit=0.0)
        require(*replies(*[reason] * 29), limit=0.0)
        with pytest.raises(TooManyInvalid, match="refuse the text, or cannot read it whole"):  # it is of the host
            require(*replies(*[reason] * 300, *[None] * 100))


def test_where_the_order_tells_nothing_only_the_whole_does():
    some = list(replies(*[None] * 100, *["invalid_reply"] * 20))
    require(*some)
    with pytest.raises(TooManyInvalid):
        require(*some, in_time=True)
