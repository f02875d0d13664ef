"""Times as pages write them, read against the time of the fetch in Shanghai."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlers.dates import AHEAD, SHANGHAI, Days, Window, day_of, moment, names_a_date
from crawlers.errors import RequestRefused
from schemas.labels import PRECISIONS

# 2025-03-14 10:33:40 in Shanghai
FETCHED = datetime(2025, 3, 14, 2, 33, 40, 500_000, tzinfo=UTC)

fetches = st.datetimes(datetime(2005, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))


def shanghai(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=SHANGHAI)


@pytest.mark.parametrize(
    ("text", "at", "precision"),
    [
        ("刚刚", shanghai(2025, 3, 14, 10, 33), "minute"),
        ("30秒前", shanghai(2025, 3, 14, 10, 33, 10), "second"),
        ("34分钟前", shanghai(2025, 3, 14, 9, 59), "minute"),
        ("半小时前", shanghai(2025, 3, 14, 10), "hour"),
        ("3\xa0小時前", shanghai(2025, 3, 14, 7), "hour"),
        ("昨天 21:07", shanghai(2025, 3, 13, 21, 7), "minute"),
        ("前天\xa008:15", shanghai(2025, 3, 12, 8, 15), "minute"),
        ("5天前", shanghai(2025, 3, 9), "day"),
        ("3周前", shanghai(2025, 2, 1), "month"),
        ("2个月前", shanghai(2025, 1, 1), "month"),
        ("1年前", shanghai(2024, 1, 1), "year"),
        ("08:05", shanghai(2025, 3, 14, 8, 5), "minute"),
        ("23:05", shanghai(2025, 3, 13, 23, 5), "minute"),
        ("2020-04-11", shanghai(2020, 4, 11), "day"),
        ("2023-5-21 12:33:07", shanghai(2023, 5, 21, 12, 33, 7), "second"),
        ("发表于 2023-5-21\xa012:33", shanghai(2023, 5, 21, 12, 33), "minute"),
        ("2023年5月21日 12:33", shanghai(2023, 5, 21, 12, 33), "minute"),
        ("03-13 22:40", shanghai(2025, 3, 13, 22, 40), "minute"),
        ("12-30 22:40", shanghai(2024, 12, 30, 22, 40), "minute"),
        ("02-29", shanghai(2024, 2, 29), "day"),
        ("12月30日", shanghai(2024, 12, 30), "day"),
        ("2025-03-12T15:30:11.341Z", datetime(2025, 3, 12, 15, 30, 11, tzinfo=UTC), "second"),
        ("2025-03-12T23:30:11+08:00", datetime(2025, 3, 12, 15, 30, 11, tzinfo=UTC), "second"),
    ],
)
def test_times_as_sites_write_them(text, at, precision):
    time = moment(text, FETCHED)
    assert (time.at, time.precision) == (at, precision)
    assert time.at.utcoffset() == timedelta(0)


def test_what_is_no_time():
    for text in (
        "", "我很难过", "昨天昨天", "25:00", "2025-13-01", "2025-02-30", "02-30", "半分钟前", "2025-03-16",
        "1889-01-01", "999999年前", "2025-03-14 24:00", "２０２５-03-01", "x" * 500, "9999-12-31 23:59",
        "0001-01-01T00:00:00+14:00",
    ):  # fmt: skip
        with pytest.raises(ValueError, match="time") as error:
            moment(text, FETCHED)
        assert "难过" not in str(error.value)


def test_named_dates_are_the_same_whenever_the_page_is_fetched():
    assert names_a_date(moment("2020-04-11", FETCHED))
    assert not names_a_date(moment("12-30 22:40", FETCHED))
    assert not names_a_date(moment("3小时前", FETCHED))


units = st.sampled_from(("秒", "分钟", "小时", "天", "周", "个月", "年"))
ago = st.builds("{}{}前".format, st.integers(0, 999_999), units)


@given(st.text(max_size=40) | ago, fetches)
def test_any_text_is_a_time_or_a_value_error_and_what_was_ago_lies_behind(text, fetched_at):
    try:
        time = moment(text, fetched_at)
    except ValueError:
        return
    assert time.precision in PRECISIONS
    assert time.at <= fetched_at + (timedelta(0) if text.endswith("前") else AHEAD)


@given(st.datetimes(datetime(2005, 1, 1), datetime(2035, 1, 1)), st.integers(0, 363 * 24 * 60), st.booleans())
def test_month_and_day_belong_to_the_year_before_the_fetch(posted, minutes, padded):
    """Posted within a year before the fetch (less the day by which clocks may differ), a date needs no year."""
    posted = posted.replace(second=0, microsecond=0, tzinfo=SHANGHAI)
    fetched_at = (posted + timedelta(minutes=minutes)).astimezone(UTC)
    text = f"{posted:%m-%d %H:%M}" if padded else f"{posted.month}-{posted.day} {posted.hour}:{posted.minute:02}"
    assert moment(text, fetched_at).at == posted
    assert moment(f"{posted.year}/{text.replace('-', '/')}", fetched_at).at == posted


# Windows are days of Asia/Shanghai, wherever the crawl runs.


def test_both_ends_are_inside_and_may_be_left_out():
    window = Window.parse("2025-03-01", "2025-03-02", date(2025, 3, 14))
    assert [date(2025, 2, 28) in window, *(date(2025, 3, day) in window for day in (1, 2, 3))] == [0, 1, 1, 0]
    assert Window.parse(None, None, date(2025, 3, 14)) == Window(date(2025, 3, 14), date(2025, 3, 14))
    assert Window.parse("2025-03-01", None, date(2025, 3, 14)) == Window(date(2025, 3, 1), date(2025, 3, 14))
    assert Window.parse(None, "2025-03-02", date(2025, 3, 14)) == Window(date(2025, 3, 2), date(2025, 3, 2))


def test_a_window_that_can_not_be_is_refused():
    for first in ("2025-13-01", "yesterday", "1", "2025-03-20"):
        with pytest.raises(RequestRefused):
            Window.parse(first, "2025-03-14", date(2025, 3, 14))


def test_a_rounded_time_may_stand_on_the_day_beside_it():
    now = shanghai(2025, 3, 14, 0, 30)
    assert Days.of(moment("1小时前", now)) == Days(date(2025, 3, 13), date(2025, 3, 14))
    assert Days.of(moment("2025-03-13", now)) == Days(date(2025, 3, 13), date(2025, 3, 13))


@settings(max_examples=60)
@given(st.integers(0, 60 * 24 * 6), st.integers(0, 60 * 24))
def test_the_day_of_a_relative_time_is_always_within_its_days(minutes, offset):
    """However a site rounds: the true day of posting is one that its words allow."""
    now = shanghai(2025, 3, 14) + timedelta(minutes=offset)
    true = day_of(now - timedelta(minutes=minutes))
    hours, days = minutes // 60, minutes // (60 * 24)
    words = f"{days}天前" if days else f"{hours}小时前" if hours else f"{minutes}分钟前" if minutes else "刚刚"
    allowed = Days.of(moment(words, now))
    assert (allowed.first or date.max) <= true <= (allowed.last or date.min)


def test_what_is_surely_outside():
    window = Window(date(2025, 3, 5), date(2025, 3, 6))
    before, after = (Days.of(moment(day, FETCHED)) for day in ("2025-03-04", "2025-03-07"))
    days = (before, after, Days(), Days(None, date(2025, 3, 9)))
    assert [window.surely_older(one) for one in days] == [True, False, False, False]
    assert [window.surely_newer(one) for one in days] == [False, True, False, False]
