"""Times of posts: the instant and its precision."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pipelines.ingest.forms import Unfit
from pipelines.ingest.mapped import read_time

SHANGHAI = ZoneInfo("Asia/Shanghai")


@pytest.mark.parametrize(
    ("written", "instant", "precision"),
    [
        ("2025-03-04 21:15", datetime(2025, 3, 4, 13, 15, tzinfo=UTC), "minute"),
        ("2025/3/4 7:05", datetime(2025, 3, 3, 23, 5, tzinfo=UTC), "minute"),
        ("2025-03-04T21:15:06", datetime(2025, 3, 4, 13, 15, 6, tzinfo=UTC), "second"),
        ("2025-03-04T21:15:06.25Z", datetime(2025, 3, 4, 21, 15, 6, 250_000, tzinfo=UTC), "second"),
        ("2025-03-04 21:15 +01:00", datetime(2025, 3, 4, 20, 15, tzinfo=UTC), "minute"),
        ("2025-03-04", datetime(2025, 3, 3, 16, tzinfo=UTC), "day"),
        ("2025-03", datetime(2025, 2, 28, 16, tzinfo=UTC), "month"),
        ("2025", datetime(2024, 12, 31, 16, tzinfo=UTC), "year"),
        (date(2025, 3, 4), datetime(2025, 3, 3, 16, tzinfo=UTC), "day"),
        (datetime(2025, 3, 4, 21, 15), datetime(2025, 3, 4, 13, 15, tzinfo=UTC), "second"),
        (
            datetime(2025, 3, 4, 21, tzinfo=timezone(timedelta(hours=9))),
            datetime(2025, 3, 4, 12, tzinfo=UTC),
            "second",
        ),
    ],
)
def test_times(written: Any, instant: datetime, precision: str) -> None:
    assert read_time(written, SHANGHAI, "when") == (instant, precision)


@pytest.mark.parametrize("written", ["3 days ago", "2025-13-01", "2025-03-04 25:00", 1741094100, "", "0000", "0001"])
def test_no_times(written: Any) -> None:
    with pytest.raises(Unfit):
        read_time(written, SHANGHAI, "when")
