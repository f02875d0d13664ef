"""Windows are days of Asia/Shanghai, wherever the crawl runs."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlers.dates import Days, Window, day_of, moment
from crawlers.errors import RequestRefused
from crawlers.records import Moment

TODAY = date(2025, 3, 14)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def test_both_ends_are_inside_and_may_be_left_out():
    window = Window.parse("2025-03-01", "2025-03-02", TODAY)
    assert [date(2025, 2, 28) in window, *(date(2025, 3, day) in window for day in (1, 2, 3))] == [0, 1, 1, 0]
    assert Window.parse(None, None, TODAY) == Window(TODAY, TODAY)
    assert Window.parse("2025-03-01", None, TODAY) == Window(date(2025, 3, 1), TODAY)
    assert Window.parse(None, "2025-03-02", TODAY) == Window(date(2025, 3, 2), date(2025, 3, 2))


@pytest.mark.parametrize("first", ["2025-13-01", "yesterday", "1", "2025-03-20"])
def test_a_window_that_can_not_be_is_refused(first):
    with pytest.raises(RequestRefused):
        Window.parse(first, "2025-03-14", TODAY)


def test_a_rounded_time_may_stand_on_the_day_beside_it():
    now = at("2025-03-14T00:30+08:00")
    assert Days.of(moment("1小时前", now)) == Days(date(2025, 3, 13), date(2025, 3, 14))
    assert Days.of(moment("2025-03-13", now)) == Days(date(2025, 3, 13), date(2025, 3, 13))


@settings(max_examples=60)
@given(st.integers(0, 60 * 24 * 6), st.integers(0, 60 * 24))
def test_the_day_of_a_relative_time_is_always_within_its_days(minutes, offset):
    """However a site rounds: the true day of posting is one that its words allow."""
    now = at("2025-03-14T00:00+08:00") + timedelta(minutes=offset)
    true = day_of(now - timedelta(minutes=minutes))
    hours, days = minutes // 60, minutes // (60 * 24)
    words = f"{days}天前" if days else f"{hours}小时前" if hours else f"{minutes}分钟前" if minutes else "刚刚"
    allowed = Days.of(moment(words, now))
    assert allowed.first is not None
    assert allowed.last is not None
    assert allowed.first <= true <= allowed.last


def test_what_is_surely_outside():
    window = Window(date(2025, 3, 5), date(2025, 3, 6))
    exact = Days.of(Moment(at("2025-03-04T12:00+08:00"), "day", "2025-03-04"))
    assert window.surely_older(exact)
    assert not window.surely_newer(exact)
    assert window.surely_newer(Days(date(2025, 3, 7), date(2025, 3, 7)))
    assert not window.surely_older(Days())
    assert not window.surely_newer(Days(None, date(2025, 3, 9)))
