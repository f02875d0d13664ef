"""NodeBB, in JSON: `/api/category/{cid}` lists topics, `/api/topic/{tid}` holds posts; both count pages from 1."""

import re
from collections.abc import Mapping
from datetime import datetime

from crawlers.pages import guard
from crawlers.records import Answer, Listed, ListPage, PageError, PostPage, Question, UnknownLayout
from crawlers.sites import Board, Site

LAYOUT = "nodebb"
SELECTORS: Mapping[str, str] = {}  # JSON has no skins
JSON = True
ORDERED = False
LATEST = "/api/recent"

_FORUM = re.compile(r"(.*?)/api/(?:category|topic|recent|tags)(?:/.*)?")
_TOPIC_PATH = re.compile(r".*/api/topic/([0-9]{1,18})(?:/.*)?")
# In a post, but not its writer's words.
_NOT_WRITTEN = "blockquote, .plugin-quote"


def board_path(_site: Site, board: Board) -> str:
    """The list of a category."""
    return f"/api/category/{board.id}"


def list_page(body: object, url: str, fetched_at: datetime) -> ListPage:
    """The topics of a category; a topic's address is that of its JSON."""
    if not isinstance(body, dict) or not isinstance(body.get("topics"), list):
        raise UnknownLayout("no `topics`")
    shown = [topic for topic in body["topics"] if not _flag(topic, "deleted")]
    listed = (_listed(topic, url, fetched_at) for topic in shown)
    return guard.list_page(listed, _next_url(body, url), n_posts=guard.get_or_none(body, "topic_count", int))


def _listed(topic: object, url: str, fetched_at: datetime) -> Listed:
    source_id = guard.number_id(topic, "tid")
    last = guard.get_or_none(topic, "lastposttimeISO", str)
    return Listed(
        source_id=source_id,
        url=f"{_forum(url)}/api/topic/{source_id}",
        fingerprint=f"{guard.count(topic, 'postcount')} {last or ''}".strip(),
        posted=guard.moment_or_none(guard.get(topic, "timestampISO", str), fetched_at),
        active=guard.moment_or_none(last, fetched_at),
        pinned=_flag(topic, "pinned"),
    )


def post_page(body: object, url: str, fetched_at: datetime) -> PostPage:
    """A page of a topic; the question is the topic's main post."""
    if not isinstance(body, dict) or not isinstance(body.get("posts"), list):
        raise UnknownLayout("no `posts`")
    source_id = guard.own_id(body, "tid", _TOPIC_PATH, url)
    main = guard.number_id(body, "mainPid")
    posts = {guard.number_id(post, "pid"): post for post in body["posts"]}
    if len(posts) != len(body["posts"]):
        raise PageError("a post that stands twice")
    first = (guard.parameter(url, "page") or 1) <= 1
    if first and main not in posts:
        raise PageError("the first page of a topic without the question")
    # The main post may be repeated on every page.
    question = _question(body, posts[main], source_id, url, fetched_at) if first else None
    shown = [(pid, post) for pid, post in posts.items() if pid != main]
    answers, n_unread = guard.answers(shown, lambda row: _answer(row[1], row[0], fetched_at))
    n_answers = guard.count_of_answers(body, "postcount")
    return guard.page(question, answers, [_next_url(body, url)], LAYOUT, n_answers, n_unread=n_unread)


def _question(topic: dict[str, object], post: object, source_id: str, url: str, fetched_at: datetime) -> Question:
    if _flag(topic, "deleted") or _flag(post, "deleted"):
        raise PageError("a question that was removed")
    category = guard.get_or_none(topic, "category", dict)
    tags = guard.get_or_none(topic, "tags", list) or []
    return Question(
        source_id=source_id,
        url=f"{_forum(url)}/topic/{source_id}",
        title=guard.title_of(guard.html_text(guard.get(topic, "title", str), "", "the title")),
        description=_text(post),
        topic=None if category is None else guard.get_or_none(category, "name", str),
        subtopics=tuple(dict.fromkeys(guard.get(tag, "value", str) for tag in tags)),
        author=_author(post),
        posted=guard.moment(guard.get(post, "timestampISO", str), fetched_at, "the question"),
    )


def _answer(post: object, source_id: str, fetched_at: datetime) -> Answer | None:
    if _flag(post, "deleted"):
        return None
    author = _author(post)
    return Answer(
        source_id=source_id,
        author=author,
        author_role="member" if author else "unknown",
        text=_text(post),
        posted=guard.moment_or_none(guard.get_or_none(post, "timestampISO", str), fetched_at),
        likes=guard.count(post, "upvotes") if isinstance(post, dict) and "upvotes" in post else None,
    )


def _text(post: object) -> str:
    return guard.html_text(guard.get(post, "content", str), _NOT_WRITTEN, "a post")


def _author(post: object) -> str | None:
    """The id of a user; 0 is a guest's."""
    number: int | None = guard.get_or_none(post, "uid", int)
    return str(number) if number else None


def _flag(record: object, key: str) -> bool:
    """A flag, which NodeBB writes as 0 and 1 or as a truth value."""
    value = record.get(key) if isinstance(record, dict) else None
    if value not in (None, 0, 1):
        raise PageError(f"`{key}` is neither 0 nor 1")
    return bool(value)


def _forum(url: str) -> str:
    return guard.forum_of(url, _FORUM, "NodeBB")


def _next_url(body: dict[str, object], url: str) -> str | None:
    pagination = guard.get_or_none(body, "pagination", dict)
    following = None if pagination is None else guard.get_or_none(pagination, "next", dict)
    if following is None or not guard.get(following, "active", bool):
        return None
    return guard.with_parameter(url, "page", guard.count(following, "page"))
