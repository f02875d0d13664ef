"""Times of posts: as a source writes them, in UTC, with their precision."""

import re
from datetime import UTC, date, datetime, tzinfo

from pipelines.ingest.forms import Unfit

_WRITTEN = re.compile(
    r"(?P<year>\d{4})(?:[-/](?P<month>\d{1,2})(?:[-/](?P<day>\d{1,2})"
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?P<fraction>[.,]\d{1,9})?)?"
    r"\s*(?P<offset>Z|[+-]\d{2}:?\d{2})?)?)?)?",
    re.IGNORECASE,
)
_PARTS = ("year", "month", "day", "minute", "second")


def read(value: object, zone: tzinfo, path: str) -> tuple[datetime, str]:
    """The instant (UTC) and its precision, one of `schemas.labels.PRECISIONS`.

    Args:
        value: A text (``2025-03-04 21:15``, ISO 8601, or its first parts alone) or, from Parquet, a date or datetime.
        zone: The zone of a time without one.
        path: The field, for the Unfit that is raised for anything else.
    """
    if isinstance(value, datetime):
        return _utc(value, zone), "second"
    if isinstance(value, date):
        return _utc(datetime(value.year, value.month, value.day), zone), "day"
    written = _WRITTEN.fullmatch(value.strip()) if isinstance(value, str) else None
    if written is None:
        raise Unfit("bad_time", f"`{path}` is not a time of the form 2025-03-04 21:15")
    precision = next(part for part in reversed(_PARTS) if written[part] is not None)
    year, month, day, hour, minute, second = (
        int(written[part] or least)
        for part, least in (("year", 1), ("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0))
    )
    micro = int((written["fraction"] or ".0")[1:7].ljust(6, "0"))
    try:
        moment = datetime(year, month, day, hour, minute, second, micro, tzinfo=_offset(written["offset"], zone))
        return _utc(moment, zone), precision
    except (ValueError, OverflowError) as error:
        raise Unfit("bad_time", f"`{path}` is a time that cannot be") from error


def _offset(written: str | None, zone: tzinfo) -> tzinfo:
    if written is None:
        return zone
    return datetime.strptime(written.upper(), "%z").tzinfo or UTC


def _utc(moment: datetime, zone: tzinfo) -> datetime:
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
