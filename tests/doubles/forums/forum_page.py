"""What the replicas of forums have in common: ids, JSON, and answers that they hide."""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import samples.replica.page
from samples.replica.page import Page
from samples.replica.world import Answer, Post, World

FIRST_TOPIC = 4_000
FIRST_MESSAGE = 9_000
NOTE = {"replica": "everything here is invented"}


def topic_id(post: Post) -> int:
    """The id of a thread, the same on every forum."""
    return FIRST_TOPIC + post.number


def message_id(message: Post | Answer) -> int:
    """The id of a message, the same on every forum: the question is one too."""
    return FIRST_MESSAGE + 2 * message.number + isinstance(message, Answer)


def post_of(world: World, match: re.Match[str] | None) -> Post | None:
    """The post whose id the first group of an address matched, None where there is none."""
    return world.post(int(match[1]) - FIRST_TOPIC) if match else None


def render(template: str, **values: Any) -> str:
    """The HTML of a template of the forums (`templates/<template>.html.j2`)."""
    path = Path(__file__).with_name("templates") / f"{template}.html.j2"
    return samples.replica.page.render(path, hidden=hidden, topic_id=topic_id, message_id=message_id, **values)


def iso(at: datetime) -> str:
    """As JSON interfaces write it: UTC with milliseconds."""
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def json_page(value: dict[str, object]) -> Page:
    """A JSON page."""
    return Page(json.dumps(NOTE | value, ensure_ascii=False).encode(), "application/json; charset=utf-8")


def words_of(message: Post | Answer) -> str:
    """What its writer wrote, but for the title."""
    return message.description if isinstance(message, Post) else message.text


def hidden(message: Post | Answer) -> bool:
    """Whether forums hide this answer (its writer was banned, or a moderator hid it): one of forty-one."""
    return isinstance(message, Answer) and message.number % 41 == 7


def most_active(world: World) -> list[Post]:
    """All posts as forums list them: the notices, then the one with the latest post or answer first."""
    return sorted(world.newest(), key=lambda post: (post.notice, post.active_at, post.number), reverse=True)
