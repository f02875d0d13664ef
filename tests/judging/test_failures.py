"""When a judge has failed too often: the share among the last judgements, from the first ones on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.judging.failures import LEAST_ASKED, LEAST_FAILED, WINDOW, Failures


def counted(failed, limit=0.05):
    found = Failures(limit)
    for one in failed:
        found.count(failed=one)
    return found


@given(st.lists(st.booleans(), max_size=120), st.floats(0, 1))
def test_it_is_the_share_of_the_last_judgements(failed, limit):
    found = counted(failed, limit)
    last = failed[-WINDOW:]
    assert (found.asked, found.failed) == (len(failed), sum(failed))
    enough = len(last) >= LEAST_ASKED and sum(last) >= LEAST_FAILED
    assert found.too_many == (enough and sum(last) > limit * len(last))


def test_an_outage_is_seen_after_ten_judgements():
    assert [counted([True] * n).too_many for n in (LEAST_ASKED - 1, LEAST_ASKED)] == [False, True]


def test_two_odd_replies_at_the_beginning_stop_nothing():
    assert not counted([True, True, *[False] * 30]).too_many


def test_what_went_well_long_ago_hides_no_outage():
    assert counted([False] * 1000 + [True] * LEAST_FAILED).too_many


@pytest.mark.parametrize("limit", [0.5, 1.0])
def test_a_higher_limit_bears_more(limit):
    assert not counted([True, False] * 40, limit).too_many
    assert counted([True] * 40, limit).too_many == (limit < 1)
