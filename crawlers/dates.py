"""When something was posted, as a page writes it at the time of its fetch; and the days that a crawl is for.

==========================  =======  ===============================================================
on the page                 gives    read as
==========================  =======  ===============================================================
刚刚, N分钟前               minute   the fetch less N minutes
N秒前                       second
半小时前, N小时前           hour     Discuz says 半小时 from the 31st to the 60th minute: no more exact than an hour
今天/昨天/前天 HH:MM        minute   without a time: day
N天前                       day
N周前, N个月前, N年前       month, month, year
[Y-]n-j [H:i[:s]]           day …    also with / or 年月日, padded or not; without a year the latest one that fits
HH:MM                       minute   today, or yesterday where that lies ahead
2025-03-14T02:33:00.000Z    second   JSON engines
==========================  =======  ===============================================================

Every site of ours keeps the time of Shanghai. The moment given is the beginning of the second, minute … that is named,
so a day is the midnight of Shanghai with which it begins.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from crawlers.errors import RequestRefused
from crawlers.records import Moment

SHANGHAI = ZoneInfo("Asia/Shanghai")
# The clocks of a site and of ours may differ, and a site may keep another zone than we think: by a day at most.
AHEAD = timedelta(days=1)
EARLIEST_YEAR = 1990  # no forum is older: an earlier year is no date

_LONGEST = 60
_PREFIX = re.compile(r"^(?:发表|发布|回答|回复|创建|發表|發佈|回覆)(?:于|於)[::]?\s*")
_CLOCK = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?"
_DATE = re.compile(
    r"(?:(?P<year>[0-9]{4})(?:[-/.]|年))?(?P<month>[0-9]{1,2})(?:[-/.]|月)(?P<day>[0-9]{1,2})日?"
    rf"(?:\s*{_CLOCK})?"
)
_NAMED_DAY = re.compile(rf"(?P<name>今天|昨天|前天)\s*(?:{_CLOCK})?")
_CLOCK_ALONE = re.compile(_CLOCK)
_AGO = re.compile(r"(?P<count>[0-9]{1,6}|半)\s*(?P<unit>秒|分钟|小时|天|周|星期|个月|年|分鐘|小時|週|個月)钟?前")
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})")

_DAYS_BACK = {"今天": 0, "昨天": 1, "前天": 2}
_TRADITIONAL = {"分鐘": "分钟", "小時": "小时", "週": "周", "個月": "个月", "星期": "周"}
_UNITS = {
    "秒": (timedelta(seconds=1), "second"),
    "分钟": (timedelta(minutes=1), "minute"),
    "小时": (timedelta(hours=1), "hour"),
    "天": (timedelta(days=1), "day"),
    "周": (timedelta(weeks=1), "month"),
    "个月": (timedelta(days=30), "month"),
    "年": (timedelta(days=365), "year"),
}
_PRECISIONS = ("year", "month", "day", "hour", "minute", "second")
_LEAST = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "microsecond": 0}  # of what is finer than each


def moment(text: str, fetched_at: datetime) -> Moment:
    """The moment that `text` names on a page fetched at `fetched_at` (aware).

    Raises ValueError where `text` is no time that we know, can not be, or lies more than a day ahead of `fetched_at`.
    The message does not repeat it: on a page that has changed, anything may stand there.
    """
    words = _PREFIX.sub("", " ".join(text[: 4 * _LONGEST].split()))  # split also takes the &nbsp; of Discuz
    if len(words) > _LONGEST:
        raise ValueError("too long for a time")
    now = fetched_at.astimezone(SHANGHAI)
    try:
        at, precision = _read(words, now)
        at = at.astimezone(UTC)
        ahead = at > now + AHEAD
    except (ValueError, OverflowError) as error:
        raise ValueError("no time that we know, or none that can be") from error
    if at.year < EARLIEST_YEAR or ahead:
        raise ValueError("a time that can not be when the page was fetched")
    return Moment(at, precision, words)


def names_a_date(moment: Moment) -> bool:
    """Whether the page named a date, year and all, so that the moment is the same whenever the page is fetched."""
    return re.match(r"[0-9]{4}", moment.text) is not None


def _read(words: str, now: datetime) -> tuple[datetime, str]:
    if words in {"刚刚", "剛剛"}:
        return _floor(now, "minute")
    if ago := _AGO.fullmatch(words):
        return _ago(ago["count"], _TRADITIONAL.get(ago["unit"], ago["unit"]), now)
    if named := _NAMED_DAY.fullmatch(words):
        return _at_clock(now - timedelta(days=_DAYS_BACK[named["name"]]), named)
    if clock := _CLOCK_ALONE.fullmatch(words):
        at, precision = _at_clock(now, clock)
        return (at if at <= now else at - timedelta(days=1)), precision
    if _ISO.fullmatch(words):
        return _floor(datetime.fromisoformat(words), "second")
    if date := _DATE.fullmatch(words):
        return _date(date, now)
    raise ValueError("no time that we know")


def _ago(count: str, unit: str, now: datetime) -> tuple[datetime, str]:
    length, precision = _UNITS[unit]
    if count == "半" and unit != "小时":
        raise ValueError("no time that we know")
    return _floor(now - (length / 2 if count == "半" else int(count) * length), precision)


def _date(match: re.Match[str], now: datetime) -> tuple[datetime, str]:
    month, day = int(match["month"]), int(match["day"])
    if match["year"]:
        return _at_clock(datetime(int(match["year"]), month, day, tzinfo=SHANGHAI), match)
    # Without a year: the latest that does not lie ahead. For 29 February that may be years ago.
    for year in range((now + AHEAD).year, now.year - 9, -1):
        try:
            at, precision = _at_clock(datetime(year, month, day, tzinfo=SHANGHAI), match)
        except ValueError:
            continue
        if at <= now + AHEAD:
            return at, precision
    raise ValueError("a time that can not be")


def _at_clock(day: datetime, match: re.Match[str]) -> tuple[datetime, str]:
    """`day` at the hour, minute and second of `match`, or its beginning where those are missing."""
    if match["hour"] is None:
        return _floor(day, "day")
    at = day.replace(hour=int(match["hour"]), minute=int(match["minute"]), second=int(match["second"] or 0))
    return _floor(at, "second" if match["second"] else "minute")


def _floor(at: datetime, precision: str) -> tuple[datetime, str]:
    finer = dict(list(_LEAST.items())[_PRECISIONS.index(precision) :])
    return at.replace(**finer), precision  # type: ignore[arg-type]


# "3 hours ago" and "2 days ago" are rounded, so a post may stand on the day beside the one that they give.
_ROUNDING = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "month": timedelta(days=31),
    "year": timedelta(days=366),
}


def day_of(at: datetime) -> date:
    """The day of Asia/Shanghai on which the aware time `at` falls."""
    return at.astimezone(SHANGHAI).date()


def today() -> date:
    """The day that it is in Shanghai."""
    return day_of(datetime.now(SHANGHAI))


@dataclass(frozen=True, slots=True)
class Days:
    """The first and the last day on which a post can have been written; None: no bound is known."""

    first: date | None = None
    last: date | None = None

    @classmethod
    def of(cls, moment: Moment) -> "Days":
        """The days that `moment` allows: one where the page names the day, more where it was rounded."""
        if not moment.text.endswith("前") and moment.precision not in ("month", "year"):
            return cls(day_of(moment.at), day_of(moment.at))
        rounding = _ROUNDING.get(moment.precision, timedelta(minutes=1))
        return cls(day_of(moment.at - rounding), day_of(moment.at + rounding))


@dataclass(frozen=True, slots=True)
class Window:
    """The days `first` to `last`, both of them inside."""

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise RequestRefused(
                f"the window ends on {self.last}, before it begins on {self.first}",
                hint="give the earlier day as --from",
            )

    @classmethod
    def parse(cls, first: str | None, last: str | None, today: date) -> "Window":
        """The window between two ISO days. Without `last` it ends `today`; without `first` it is one day long.

        Raises RequestRefused for text that is no day, and for a window that ends before it begins, or has not begun.
        """
        until = _day(last, "--until") if last else today
        window = cls(_day(first, "--from") if first else until, until)
        if window.first > today:
            raise RequestRefused(
                f"the window begins on {window.first}, and it is {today} in Shanghai",
                hint="give a day that has come as --from",
            )
        return window

    def __contains__(self, day: date) -> bool:
        return self.first <= day <= self.last

    def surely_older(self, days: Days) -> bool:
        """Whether a post of these `days` was written before the window, however it was rounded."""
        return days.last is not None and days.last < self.first

    def surely_newer(self, days: Days) -> bool:
        """Whether a post of these `days` was written after the window, however it was rounded."""
        return days.first is not None and days.first > self.last


def _day(text: str, option: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise RequestRefused(f"{option} {text!r} is not a day", hint="write it as 2025-03-01") from None
