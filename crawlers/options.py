"""What one crawl is asked to do: read from strings, so that `scrapy crawl -a` and `crawlers.run` mean the same."""

import ipaddress
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import urlsplit

from crawlers.dates import SHANGHAI
from crawlers.errors import RequestRefused, nearest
from crawlers.sites import Site
from crawlers.window import Window, day_of

KEY_VARIABLE = "GONGQING_AUTHOR_KEY"
CONTACT_VARIABLE = "GONGQING_CRAWL_CONTACT"
_CONTACT = re.compile(r"(https?://|mailto:)?[^\s()<>\"\\]+[.@][^\s()<>\"\\]+")
_MIN_KEY_BYTES = 16


@dataclass(frozen=True, slots=True)
class Known:
    """A post of an earlier crawl."""

    fingerprint: str | None
    day: date | None
    posted_at: str | None


@dataclass(frozen=True, slots=True)
class Options:
    """The request of one crawl, checked: nothing of it can be wrong any more once the spider runs."""

    site: Site
    window: Window
    base_url: str
    key: bytes = field(repr=False)
    contact: str | None
    now: datetime | None  # a clock that stands still, for tests and for reading relative dates anew
    delays: bool
    job: Path | None
    max_items: int | None
    since_id: int | None
    sample: float
    seen: Mapping[str, Known] = field(repr=False)
    takedown: frozenset[str] = field(repr=False)

    @property
    def host(self) -> str:
        """Host and port, as they stand in the URLs that may be asked for."""
        return urlsplit(self.base_url).netloc

    def clock(self) -> datetime:
        """The time by which relative dates are read: aware, UTC."""
        return self.now or datetime.now(UTC)


NAMES = (
    *("from_date", "until_date", "max_items", "base_url", "since_id", "sample"),
    *("job", "seen", "takedown", "contact", "now", "delays"),
)


def read_options(site: Site, said: Mapping[str, str | None]) -> Options:
    """The options of a crawl of `site`, from the strings of a command line.

    Raises:
        RequestRefused: for whatever can not be: before a single page is asked for.
    """
    for name in said:
        if name not in NAMES:
            raise RequestRefused(f"a crawl has no argument {name!r}", remedy=nearest(name, NAMES))
    given = {name: value for name, value in said.items() if value is not None and value != ""}
    now = _instant(given["now"]) if "now" in given else None
    base_url = given.get("base_url", site.base_url).rstrip("/")
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise RequestRefused("the base URL is no address of a site", where=base_url, remedy="write it as https://host")
    loopback = is_loopback(parts.hostname)
    delays = _delays(given.get("delays", "on"), parts.hostname, loopback=loopback)
    return Options(
        site=site,
        window=Window.parse(given.get("from_date"), given.get("until_date"), day_of(now or datetime.now(UTC))),
        base_url=base_url,
        key=_key(),
        contact=_contact(given.get("contact") or os.environ.get(CONTACT_VARIABLE), parts.hostname, loopback=loopback),
        now=now,
        delays=delays,
        job=Path(given["job"]) if "job" in given else None,
        max_items=_number("max_items", given["max_items"]) if "max_items" in given else None,
        since_id=_number("since_id", given["since_id"]) if "since_id" in given else None,
        sample=_share(given.get("sample", "1")),
        seen=_seen(Path(given["seen"])) if "seen" in given else {},
        takedown=_takedown(Path(given["takedown"]), site.name) if "takedown" in given else frozenset(),
    )


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _key() -> bytes:
    key = os.environ.get(KEY_VARIABLE, "").encode("utf-8", "surrogateescape")
    if len(key) < _MIN_KEY_BYTES:
        what = "is not set" if not key else f"has fewer than {_MIN_KEY_BYTES} bytes"
        raise RequestRefused(
            f"{KEY_VARIABLE} {what}, and without it authors can not be made pseudonyms",
            remedy="make one with `openssl rand -hex 32`, put it into the environment, and keep it apart from the data",
        )
    return key


def _contact(said: str | None, host: str, *, loopback: bool) -> str | None:
    if not said:
        if loopback:
            return None
        raise RequestRefused(
            f"{host} is not crawled without saying who does it",
            remedy=f"set {CONTACT_VARIABLE}, or --contact, to a mail address or a page that its owners can turn to",
        )
    if not said.isascii() or not _CONTACT.fullmatch(said):
        raise RequestRefused("the contact is neither a mail address nor a URL", remedy="write it as crawl@example.org")
    return said


def _delays(said: str, host: str, *, loopback: bool) -> bool:
    if said not in ("on", "off"):
        raise RequestRefused(f"delays can be on or off, not {said!r}")
    if said == "off" and not loopback:
        raise RequestRefused(f"{host} is never crawled without delays", remedy="only a replica on this machine is")
    return said == "on"


def _instant(said: str) -> datetime:
    try:
        at = datetime.fromisoformat(said)
    except ValueError:
        raise RequestRefused(f"now {said!r} is not a time", remedy="write it as 2025-03-14T12:00+08:00") from None
    return (at if at.tzinfo else at.replace(tzinfo=SHANGHAI)).astimezone(UTC)


def _number(name: str, said: str) -> int:
    if not said.isdecimal() or int(said) < 1:
        raise RequestRefused(f"{name} {said!r} is not a whole number above zero")
    return int(said)


def _share(said: str) -> float:
    try:
        share = float(said)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise RequestRefused(f"sample {said!r} is not a share of the posts", remedy="give a number in (0, 1]")
    return share


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestRefused(f"the file can not be read: {error}", where=path) from error


def _seen(path: Path) -> dict[str, Known]:
    known = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            row = json.loads(line)
            posted_at = row.get("posted_at")
            day = day_of(datetime.fromisoformat(posted_at)) if posted_at else None
            known[str(row["source_id"])] = Known(row.get("fingerprint"), day, posted_at)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RequestRefused(
                "a line is not {source_id, fingerprint, posted_at} in JSON",
                where=f"{path}:{number}",
                remedy="pass the seen.jsonl of an earlier job",
            ) from None
    return known


def _takedown(path: Path, source: str) -> frozenset[str]:
    """The ids of `source`, which stand there bare or as `source:id`, one a line; `#` begins a remark."""
    ids = set()
    for line in _lines(path):
        name = line.split("#", 1)[0].strip()
        if name:
            owner, colon, source_id = name.partition(":")
            if not colon:
                ids.add(name)
            elif owner == source:
                ids.add(source_id)
    return frozenset(ids)
