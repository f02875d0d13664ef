"""What one crawl is asked to do: read from strings, so that `scrapy crawl -a` and `crawlers.run` mean the same."""

import ipaddress
import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from crawlers.dates import SHANGHAI
from crawlers.errors import RequestRefused, nearest
from crawlers.sites import Site, sites
from crawlers.window import Window, day_of

KEY_VARIABLE = "GONGQING_AUTHOR_KEY"
CONTACT_VARIABLE = "GONGQING_CRAWL_CONTACT"
_CONTACT = re.compile(r"(https?://|mailto:)?[^\s()<>\"\\]+[.@][^\s()<>\"\\]+")
_MIN_KEY_BYTES = 16
_NO_BASE = re.compile(r"[\s?#\x00-\x1f\x7f]")
_ID = re.compile(r"[0-9]{1,18}")  # of a post, on every engine of ours
_NAME = re.compile(r"[A-Za-z0-9_]{1,40}")
# What reading a line of a file of ours raises where something else stands there.
DAMAGED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class Known:
    """A post of an earlier crawl."""

    fingerprint: str | None  # what the list showed of it when it was fetched; None: it was not, or nothing is shown
    day: date | None
    posted_at: str | None
    unread: bool = False  # its page could not be read; the fingerprint is that of the failure


@dataclass(frozen=True, slots=True)
class Options:
    """The request of one crawl, checked: nothing of it can be wrong any more once the spider runs."""

    site: Site
    window: Window
    base_url: str
    key: bytes = field(repr=False)
    contact: str | None
    now: datetime | None  # a clock that stands still, for tests and for reading relative dates again
    delays: bool
    job: Path | None
    max_items: int | None
    since_id: int | None
    sample: float
    seen: Mapping[str, Known] = field(repr=False)
    takedown: frozenset[str] = field(repr=False)
    keep_pages_days: int

    @property
    def host(self) -> str:
        """Host and port, as they stand in the URLs that may be asked for."""
        return urlsplit(self.base_url).netloc

    def clock(self) -> datetime:
        """The time by which relative dates are read: aware, UTC."""
        return self.now or datetime.now(UTC)


NAMES = (
    *("from_date", "until_date", "max_items", "base_url", "since_id", "sample"),
    *("job", "seen", "takedown", "keep_pages_days", "contact", "now", "delays"),
)


def read_options(site: Site, said: Mapping[str, str | None]) -> Options:
    """The options of a crawl of `site`, from the strings of a command line.

    Raises:
        RequestRefused: for whatever can not be: before a single page is asked for.
    """
    for name in said:
        if name not in NAMES:
            raise RequestRefused(f"a crawl has no argument {name!r}", hint=nearest(name, NAMES))
    given = {name: value for name, value in said.items() if value is not None and value != ""}
    now = _instant(given["now"]) if "now" in given else None
    base_url, host = _base_url(given.get("base_url", site.base_url))
    loopback = is_loopback(host)
    delays = _delays(given.get("delays", "on"), host, loopback=loopback)
    return Options(
        site=site,
        window=Window.parse(given.get("from_date"), given.get("until_date"), day_of(now or datetime.now(UTC))),
        base_url=base_url,
        key=_key(),
        contact=_contact(given.get("contact") or os.environ.get(CONTACT_VARIABLE), host, loopback=loopback),
        now=now,
        delays=delays,
        job=Path(given["job"]) if "job" in given else None,
        max_items=_number("max_items", given["max_items"]) if "max_items" in given else None,
        since_id=_number("since_id", given["since_id"]) if "since_id" in given else None,
        sample=_share(given.get("sample", "1")),
        seen=_seen(Path(given["seen"])) if "seen" in given else {},
        takedown=_takedown(Path(given["takedown"]), site) if "takedown" in given else frozenset(),
        keep_pages_days=_number("keep_pages_days", given.get("keep_pages_days", "7"), least=0),
    )


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _base_url(said: str) -> tuple[str, str]:
    """The address below which a site stands, in the one form that every address of its pages has; and its host."""
    try:
        parts = urlsplit(said)
        port = parts.port  # read, and refused, only when it is asked for
    except ValueError:
        parts, port = urlsplit(""), None
    host, scheme = parts.hostname, parts.scheme
    if scheme not in ("http", "https") or not host or "@" in parts.netloc or _NO_BASE.search(said):
        raise RequestRefused("the base URL is no address of a site", where=said, hint="write it as https://host")
    place = f"[{host}]" if ":" in host else host
    if port not in (None, {"http": 80, "https": 443}[scheme]):
        place += f":{port}"
    return f"{scheme}://{place}{parts.path}".rstrip("/"), host


def _key() -> bytes:
    try:
        key = os.environ.get(KEY_VARIABLE, "").encode()
    except UnicodeEncodeError:
        raise RequestRefused(
            f"{KEY_VARIABLE} is no text in UTF-8", hint="make one with `openssl rand -hex 32`"
        ) from None
    if len(key) < _MIN_KEY_BYTES:
        what = "is not set" if not key else f"has fewer than {_MIN_KEY_BYTES} bytes"
        raise RequestRefused(
            f"{KEY_VARIABLE} {what}, and without it authors can not be made pseudonyms",
            hint="make one with `openssl rand -hex 32`, put it into the environment, and keep it apart from the data",
        )
    return key


def _contact(said: str | None, host: str, *, loopback: bool) -> str | None:
    if not said:
        if loopback:
            return None
        raise RequestRefused(
            f"{host} is not crawled without saying who does it",
            hint=f"set {CONTACT_VARIABLE}, or contact under [crawl] in gongqing.toml (--contact of crawlers.run), "
            "to a mail address or a page that its owners can turn to",
        )
    if not said.isascii() or not _CONTACT.fullmatch(said):
        raise RequestRefused("the contact is neither a mail address nor a URL", hint="write it as crawl@example.org")
    return said


def _delays(said: str, host: str, *, loopback: bool) -> bool:
    if said not in ("on", "off"):
        raise RequestRefused(f"delays can be on or off, not {said!r}")
    if said == "off" and not loopback:
        raise RequestRefused(f"{host} is never crawled without delays", hint="only a replica on this machine is")
    return said == "on"


def _instant(said: str) -> datetime:
    try:
        at = datetime.fromisoformat(said)
    except ValueError:
        raise RequestRefused(f"now {said!r} is not a time", hint="write it as 2025-03-14T12:00+08:00") from None
    return (at if at.tzinfo else at.replace(tzinfo=SHANGHAI)).astimezone(UTC)


def _number(name: str, said: str, least: int = 1) -> int:
    if not _ID.fullmatch(said) or int(said) < least:
        raise RequestRefused(f"{name} {said!r} is not a whole number", hint=f"give {least} or more")
    return int(said)


def _share(said: str) -> float:
    try:
        share = float(said)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise RequestRefused(f"sample {said!r} is not a share of the posts", hint="give a number in (0, 1]")
    return share


def read_known(row: Mapping[str, Any]) -> Known:
    """What is known of the post of a line of `seen.jsonl` or of a journal; raises one of `DAMAGED` for another line."""
    fingerprint, posted_at = row.get("fingerprint"), row["posted_at"]
    if not isinstance(fingerprint, str | None):
        raise TypeError("the fingerprint is no text")
    day = day_of(datetime.fromisoformat(posted_at)) if posted_at else None
    return Known(fingerprint, day, posted_at, row.get("unread") is True)


def read_takedown(path: Path, source: str, sources: Collection[str]) -> frozenset[str]:
    """The ids of `source` that are never to be fetched, or kept.

    Args:
        path: UTF-8; one `source:id` a line, or an id alone, which is one of every source; `#` begins a remark.
        source: whose ids are wanted.
        sources: all that there are: a line that names none of them would protect nobody.

    Raises:
        RequestRefused: for a line that is anything else, and a file that can not be read.
    """
    ids = set()
    for number, line in enumerate(_lines(path), 1):
        name = line.split("#", 1)[0].strip()
        if not name:
            continue
        owner, colon, source_id = name.rpartition(":")
        is_id = _ID.fullmatch(source_id) is not None
        # Nothing but a name is repeated: whoever wants to be taken down may stand there.
        if is_id and _NAME.fullmatch(owner) and owner not in sources:
            raise RequestRefused(
                f"there is no source {owner!r}", where=f"{path}:{number}", hint=nearest(owner, sources)
            )
        if not is_id or (colon and owner not in sources):
            what = "an address" if "//" in name else "something else"
            raise RequestRefused(
                f"{what} where the id of a post should stand",
                where=f"{path}:{number}",
                hint="write source:id, as xinli001:100841600, one a line; a remark begins with #",
            )
        if owner in ("", source):
            ids.add(source_id)
    return frozenset(ids)


def _takedown(path: Path, site: Site) -> frozenset[str]:
    return read_takedown(path, site.name, {*sites(), site.name})


def _seen(path: Path) -> dict[str, Known]:
    known = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            row = json.loads(line)
            known[str(row["source_id"])] = read_known(row)
        except DAMAGED:
            raise RequestRefused(
                "a line is not {source_id, fingerprint, posted_at} in JSON",
                where=f"{path}:{number}",
                hint="pass the seen.jsonl of an earlier job",
            ) from None
    return known


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestRefused(f"the file can not be read: {error}", where=path) from None
