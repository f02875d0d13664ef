"""What the replicas of forums have in common: times as they write them, JSON, and answers that they hide."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import samples.replica.page
from samples.replica.page import Page, local
from samples.replica.world import Answer, Post, World

TEMPLATES = Path(__file__).with_name("templates")


def render(template: str, **values: Any) -> str:
    """The HTML of a template of the forums (`templates/<template>.html.j2`)."""
    used = (hidden, discuz_date, discuz_exact, discuz_time)
    named = {each.__name__: each for each in used}
    return samples.replica.page.render(TEMPLATES / f"{template}.html.j2", **named, **values)


def discuz_date(at: datetime) -> str:
    """Discuz's Y-n-j, without leading zeros."""
    day = local(at)
    return f"{day.year}-{day.month}-{day.day}"


def discuz_exact(at: datetime) -> str:
    """Discuz's Y-n-j H:i:s."""
    return f"{discuz_date(at)} {local(at):%H:%M:%S}"


def discuz_time(at: datetime, now: datetime, exact: str) -> str:
    """HTML as Discuz's dgmdate gives it: up to 7 days words in a span whose title is `exact`, otherwise `exact`."""
    seconds, day, days = int((now - at).total_seconds()), local(at), (local(now).date() - local(at).date()).days
    if days > 7:
        return exact
    if days > 2:
        words = f"{days}&nbsp;天前"
    elif days:
        words = f"{'昨天' if days == 1 else '前天'}&nbsp;{day:%H:%M}"
    elif seconds > 3600:
        words = f"{seconds // 3600}&nbsp;小时前"
    elif seconds > 1800:
        words = "半小时前"
    else:
        words = f"{seconds // 60}&nbsp;分钟前" if seconds > 60 else f"{seconds}&nbsp;秒前" if seconds > 0 else "刚刚"
    return f'<span title="{exact}">{words}</span>'


def iso(at: datetime) -> str:
    """As JSON interfaces write it: UTC with milliseconds."""
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def json_page(value: object, status: int = 200) -> Page:
    """A JSON page."""
    return Page(json.dumps(value, ensure_ascii=False).encode(), "application/json; charset=utf-8", status)


def hidden(answer: Answer) -> bool:
    """Whether forums hide this answer (its writer was banned, or a moderator hid it): one of forty-one."""
    return answer.number % 41 == 7


def most_active(world: World) -> list[Post]:
    """All posts, the one with the latest post or answer first: how forums order their lists."""
    return sorted(world.newest(), key=lambda post: (post.active_at, post.number), reverse=True)
