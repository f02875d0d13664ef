"""A page of a replica, escaping, people, and times as the site writes them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from samples.replica.world import SHANGHAI
from schemas.ids import stable_int

T = TypeVar("T")

# In every page, so that a copy on a disk says what it is.
NOTE = "<!-- gongqing replica: everything on this page is invented 本页内容全部为虚构 -->"


@dataclass(frozen=True, slots=True)
class Page:
    """An answer to a request."""

    body: bytes
    content_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class PageRequest(NamedTuple):
    """A request of an engine: `path` is relative to `base`, where the engine's site begins."""

    path: str
    query: dict[str, str]
    query_string: str
    base: str
    now: datetime


class Person(NamedTuple):
    """Someone who writes: the site's id and the name shown."""

    uid: int
    name: str
    professional: bool


def html_page(text: str, status: int = 200) -> Page:
    """An HTML page in UTF-8."""
    return Page(text.encode(), status=status)


def not_found() -> Page:
    """The answer for an unknown address."""
    return html_page(f"<!DOCTYPE html><html><head><title>404</title></head><body>{NOTE}<h1>404</h1></body></html>", 404)


def render(template: Path, **values: Any) -> str:
    """The HTML of a template; it escapes what it is given."""
    return _environment(template.parent).get_template(template.name).render(values)


@cache
def _environment(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    used = (person, figure, local, xinli001_time)
    environment.globals |= {"NOTE": NOTE} | {each.__name__: each for each in used}
    environment.filters["lines"] = lambda value: Markup("<br />\n").join(escape(line) for line in value.split("\n"))
    return environment


def person(author: str | None, role: str = "member") -> Person | None:
    """Who `author` is, None: anonymous. The uid follows from the name; the name says that nobody has it."""
    if author is None:
        return None
    return Person(1_000_000 + stable_int(author) % 8_000_000, f"虚构用户{author}", role == "professional")


def figure(most: int, *key: str | int) -> int:
    """A number from 0 to `most` that follows from `key`: reads, hugs, badges. They mean nothing."""
    return stable_int("\x1f".join(map(str, key))) % (most + 1)


def whole_number(value: str | None, default: int = 1) -> int:
    """The page number or offset in a query; `default` for what is none."""
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 10 else default


def local(at: datetime) -> datetime:
    """`at` in Shanghai."""
    return at.astimezone(SHANGHAI)


def xinli001_time(at: datetime, now: datetime) -> str:
    """As Xinli001 writes it: 34分钟前 and 2020-04-11 were seen; 刚刚, N小时前 and 昨天 HH:MM are expected."""
    seconds, day, today = (now - at).total_seconds(), local(at), local(now)
    if seconds < 60:
        return "刚刚"
    if seconds < 3600:
        return f"{int(seconds // 60)}分钟前"
    days = (today.date() - day.date()).days
    if days == 0:
        return f"{int(seconds // 3600)}小时前"
    return f"昨天 {day:%H:%M}" if days == 1 else f"{day:%Y-%m-%d}"


def sheet(items: Sequence[T], page: int, size: int) -> Sequence[T]:
    """Page `page` (from 1) of `items`."""
    return items[(page - 1) * size : page * size]


def last_page(n_items: int, size: int) -> int:
    """The number of the last page, at least 1."""
    return max(1, -(-n_items // size))
