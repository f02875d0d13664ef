"""The request of one crawl, read from strings, so that `scrapy crawl -a` and `crawlers.run` mean the same."""

import ipaddress
import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, ValidationError

from crawlers.dates import EARLIEST_YEAR, SHANGHAI, Window, day_of
from crawlers.errors import RequestRefused, nearest
from crawlers.sites import Site, sites

KEY_VARIABLE = "GONGQING_AUTHOR_KEY"
CONTACT_VARIABLE = "GONGQING_CRAWL_CONTACT"
_CONTACT = re.compile(r"(https?://|mailto:)?[^\s()<>\"\\]+[.@][^\s()<>\"\\]+")
_MIN_KEY_BYTES = 16
_NO_BASE = re.compile(r"[\s?#\x00-\x1f\x7f]")
_ID = re.compile(r"[0-9]{1,18}")  # of a post, on every engine of ours
_NAME = re.compile(r"[A-Za-z0-9_]{1,40}")
# What reading a damaged line of a file of ours raises.
DAMAGED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class Known:
    """A post of an earlier crawl."""

    fingerprint: str | None  # what the list showed of it when it was fetched; None: it was not, or nothing is shown
    day: date | None
    posted_at: str | None
    unread: bool = False  # its page could not be read; the fingerprint is that of the failure
    stated: int = 0  # answers, as its page states them
    found: int = 0


def _in_utc(time: datetime) -> datetime:
    return (time if time.tzinfo else time.replace(tzinfo=SHANGHAI)).astimezone(UTC)


_Time = Annotated[datetime, AfterValidator(_in_utc)]


class Arguments(BaseModel):
    """The arguments of a crawl; an empty one counts as absent."""

    model_config = ConfigDict(frozen=True)

    from_date: str | None = Field(None, description="first day of posting (Shanghai); default: the last")
    until_date: str | None = Field(None, description="last day of posting; default: today")
    ids: str | None = Field(None, description="A-B: walk over these ids of posts, not over lists")
    job: Path | None = Field(None, description="folder of this window; the same one to go on")
    base_url: str = Field("", description="another address of the site: its replica's")
    max_items: PositiveInt | None = Field(None, description="posts at most")
    seen: Path | None = Field(None, description="seen.jsonl of earlier jobs: unchanged posts are not fetched")
    takedown: Path | None = Field(None, description="ids that are never fetched, one source:id a line")
    missing_share: float = Field(
        0.2, ge=0, le=1, description="of the posts and answers that pages state, so many may be missing; default: 0.2"
    )
    keep_pages_days: NonNegativeInt = Field(7, description="how long raw pages stay in the job; default: 7")
    contact: str | None = Field(None, description="mail address or URL; default: GONGQING_CRAWL_CONTACT")
    now: _Time | None = Field(None, description="a clock that stands still, for tests and for relative dates")
    delays: Literal["on", "off"] = Field("on", description="on or off; off on this machine alone")


@dataclass(frozen=True, slots=True)
class Options:
    """The checked request of one crawl: nothing of it can be wrong any more once the spider runs."""

    site: Site
    window: Window
    base_url: str
    key: bytes = field(repr=False)
    contact: str | None
    ids: range | None
    args: Arguments  # those that need no more checks
    seen: Mapping[str, Known] = field(repr=False)
    takedown: frozenset[str] = field(repr=False)

    @property
    def host(self) -> str:
        """Host and port, as they stand in the URLs that may be requested."""
        return urlsplit(self.base_url).netloc

    def clock(self) -> datetime:
        """The time by which relative dates are read: aware, UTC."""
        return self.args.now or datetime.now(UTC)


def read_options(site: Site, strings: Mapping[str, str | None]) -> Options:
    """The options of a crawl of `site`, from the strings of a command line (`Arguments`).

    Raises RequestRefused for a wrong argument, before a single page is requested.
    """
    for name in strings:
        if name not in Arguments.model_fields:
            raise RequestRefused(f"a crawl has no argument {name!r}", hint=nearest(name, Arguments.model_fields))
    try:
        args = Arguments.model_validate({name: value for name, value in strings.items() if value not in (None, "")})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = str(problem["loc"][0])
        hint = Arguments.model_fields[name].description or ""
        raise RequestRefused(f"{name} {problem['input']!r}: {problem['msg']}", hint=hint) from None
    base_url, host = _base_url(args.base_url or site.base_url)
    loopback = is_loopback(host)
    if args.delays == "off" and not loopback:
        raise RequestRefused(f"{host} is never crawled without delays", hint="only a replica on this machine is")
    return Options(
        site=site,
        window=window_of(args.from_date, args.until_date, args.ids, day_of(args.now or datetime.now(UTC))),
        base_url=base_url,
        key=_key(),
        contact=_contact(args.contact or os.environ.get(CONTACT_VARIABLE), host, loopback=loopback),
        ids=None if args.ids is None else read_ids(site, args.ids),
        args=args,
        seen=_seen(args.seen) if args.seen else {},
        takedown=read_takedown(args.takedown, site.name, {*sites(), site.name}) if args.takedown else frozenset(),
    )


def window_of(first: str | None, last: str | None, ids: str | None, today: date) -> Window:
    """The window of a crawl: as `Window.parse` has it; of a walk over ids, without a day, all days."""
    if ids is None:
        return Window.parse(first, last, today)
    return Window.parse(first or f"{EARLIEST_YEAR}-01-01", last or date.max.isoformat(), today)


def read_ids(site: Site, text: str) -> range:
    """The ids of `A-B`, both of them inside.

    Raises RequestRefused for anything else, and for a site whose posts have no address that follows from their id.
    """
    if not hasattr(import_module(f"crawlers.pages.{site.engine}"), "post_path"):
        raise RequestRefused(
            f"posts of {site.engine} have no address that follows from their id alone",
            hint="crawl days: --from, --until",
        )
    match = re.fullmatch(r"([1-9][0-9]{0,17})-([1-9][0-9]{0,17})", text)
    if match is None or int(match[1]) > int(match[2]):
        raise RequestRefused(f"{text!r} are no ids of posts", hint="write them as 100733000-100734500, the lower first")
    return range(int(match[1]), int(match[2]) + 1)


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _base_url(url: str) -> tuple[str, str]:
    """The address of a site in the one form that every address of its pages has; and its host."""
    try:
        parts = urlsplit(url)
        port = parts.port  # read, and refused, only on access
    except ValueError:
        parts, port = urlsplit(""), None
    host, scheme = parts.hostname, parts.scheme
    if scheme not in ("http", "https") or not host or "@" in parts.netloc or _NO_BASE.search(url):
        raise RequestRefused("the base URL is no address of a site", where=url, hint="write it as https://host")
    netloc = f"[{host}]" if ":" in host else host
    if port not in (None, {"http": 80, "https": 443}[scheme]):
        netloc += f":{port}"
    return f"{scheme}://{netloc}{parts.path}".rstrip("/"), host


def _key() -> bytes:
    key = os.environb.get(KEY_VARIABLE.encode(), b"")
    try:
        key.decode()
        if len(key) >= _MIN_KEY_BYTES:
            return key
        problem = f"has fewer than {_MIN_KEY_BYTES} bytes" if key else "is not set"
    except UnicodeDecodeError:
        problem = "is no text in UTF-8"
    raise RequestRefused(
        f"{KEY_VARIABLE} {problem}, and without it authors can not be made pseudonyms",
        hint="make one with `openssl rand -hex 32`, put it into the environment, and keep it apart from the data",
    )


def _contact(contact: str | None, host: str, *, loopback: bool) -> str | None:
    if not contact and loopback:
        return None
    if not contact:
        raise RequestRefused(
            f"{host} is not crawled without saying who does it",
            hint=f"set {CONTACT_VARIABLE}, or contact under [crawl] in gongqing.toml (--contact of crawlers.run), "
            "to a mail address or a page that its owners can turn to",
        )
    if not contact.isascii() or not _CONTACT.fullmatch(contact):
        raise RequestRefused("the contact is neither a mail address nor a URL", hint="write it as crawl@example.org")
    return contact


def read_known(row: Mapping[str, Any]) -> Known:
    """What is known of the post of a line of `seen.jsonl` or of a journal; raises one of `DAMAGED` for another line."""
    fingerprint, posted_at = row.get("fingerprint"), row["posted_at"]
    if not isinstance(fingerprint, str | None):
        raise TypeError("the fingerprint is no text")
    day = day_of(datetime.fromisoformat(posted_at)) if posted_at else None
    return Known(
        fingerprint, day, posted_at, row.get("unread") is True, int(row.get("stated", 0)), int(row.get("found", 0))
    )


def read_takedown(path: Path, source: str, sources: Collection[str]) -> frozenset[str]:
    """The ids of `source` that are never to be fetched, or kept.

    The file has one `source:id` a line, or an id alone, which is one of every source; `#` begins a remark. Raises
    RequestRefused for a file that can not be read and a line that is anything else, or names none of `sources`: it
    would protect nobody.
    """
    ids = set()
    for number, line in enumerate(_lines(path), 1):
        entry = line.split("#", 1)[0].strip()
        if not entry:
            continue
        owner, colon, source_id = entry.rpartition(":")
        is_id = _ID.fullmatch(source_id) is not None
        # Only the name of a source is repeated: the line may hold a person's name.
        if is_id and _NAME.fullmatch(owner) and owner not in sources:
            raise RequestRefused(
                f"there is no source {owner!r}", where=f"{path}:{number}", hint=nearest(owner, sources)
            )
        if not is_id or (colon and owner not in sources):
            what = "an address" if "//" in entry else "something else"
            raise RequestRefused(
                f"{what} where the id of a post should stand",
                where=f"{path}:{number}",
                hint="write source:id, as xinli001:100841600, one a line; a remark begins with #",
            )
        if owner in ("", source):
            ids.add(source_id)
    return frozenset(ids)


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
