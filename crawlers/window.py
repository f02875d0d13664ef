"""The days of posting that a crawl is for. A day is one of Asia/Shanghai, wherever the crawl runs."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from crawlers.dates import SHANGHAI
from crawlers.errors import RequestRefused
from crawlers.records import Moment

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

        Raises:
            RequestRefused: for text that is no day, and for a window that ends before it begins, or has not begun.
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
