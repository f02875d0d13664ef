"""Discourse, in JSON: `latest.json` and `c/….json` list topics, `t/{id}.json` and `t/{id}/posts.json` hold posts.

The first page of a topic has the ids of all its posts and the text of the first twenty; the others are requested by id.
The topic of a question is the id of its category: the JSON does not name it.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from crawlers.pages import guard
from crawlers.records import Answer, Listed, ListPage, PageError, PostPage, Question, UnknownLayout
from crawlers.sites import Board, Site

LAYOUT = "discourse"
SELECTORS: Mapping[str, str] = {}  # JSON has no skins
JSON = True
ORDERED = False
LATEST = "/latest.json"

# Where the forum begins, which may be a folder of its host.
_FORUM = re.compile(r"(.*?)/(?:latest|new|top|hot|c|t|tag|tags|posts)(?:[/.].*)?")
_TOPIC_PATH = re.compile(r".*/t/(?:[^/]{1,300}/)?([0-9]{1,18})(?:/[0-9]{1,9}|/posts)?(?:\.json)?")

_SLUG = re.compile(r"[^/?#\s]{1,300}")

_BATCH = 20  # posts of one request, as many as a first page has
_BY_A_PERSON = 1  # post_type: 2 is a moderator's note, 3 a small action (closed, moved), 4 a whisper
_LIKE = 2  # its id among the actions
# In a post, but not its writer's words: quotes, previews of links, captions of files.
_NOT_WRITTEN = "aside.quote, aside.onebox, .lightbox-wrapper .meta, .lightbox .meta, .poll, .d-modal"


def board_path(_site: Site, board: Board) -> str:
    """The list of a category (`slug/id` or `id`)."""
    return f"/c/{board.id}.json"


def list_page(body: object, url: str, fetched_at: datetime) -> ListPage:
    """The topics of a list; a topic's address is that of its JSON."""
    if not isinstance(body, dict) or not isinstance(body.get("topic_list"), dict):
        raise UnknownLayout("no `topic_list`")
    topics = body["topic_list"]
    listed = (_listed(topic, url, fetched_at) for topic in guard.get(topics, "topics", list))
    return guard.list_page(listed, _next_url(guard.get_or_none(topics, "more_topics_url", str), url))


def _listed(topic: object, url: str, fetched_at: datetime) -> Listed:
    source_id = guard.number_id(topic, "id")
    return Listed(
        source_id=source_id,
        url=_forum(url) + f"/t/{source_id}.json",
        # The highest number goes up with every post, also where another was removed.
        fingerprint=f"{guard.count(topic, 'posts_count')} {guard.count(topic, 'highest_post_number')}",
        posted=guard.moment_or_none(guard.get(topic, "created_at", str), fetched_at),
        active=guard.moment_or_none(guard.get_or_none(topic, "last_posted_at", str), fetched_at),
        pinned=any(guard.get_or_none(topic, key, bool) or False for key in ("pinned", "pinned_globally")),
    )


def post_page(body: object, url: str, fetched_at: datetime) -> PostPage:
    """A topic, or more posts of one."""
    if not isinstance(body, dict) or not isinstance(body.get("post_stream"), dict):
        raise UnknownLayout("no `post_stream`")
    source_id = guard.own_id(body, "id", _TOPIC_PATH, url)
    stream = body["post_stream"]
    posts = guard.get(stream, "posts", list)
    ids = [guard.number_id(post, "id") for post in posts]
    guard.distinct(ids, "a post")
    more = [guard.number_id({"id": each}, "id") for each in guard.get_or_none(stream, "stream", list) or []]
    guard.distinct(more, "an id of a post")
    complete = bool(more)
    if complete and not set(ids) <= set(more):  # its id is wrong: the right one would come as one post more
        raise PageError("a post that the topic does not list")
    more = [each for each in more if each not in set(ids)]
    numbers = [guard.count(post, "post_number") for post in posts]
    guard.distinct([str(number) for number in numbers], "a number of a post")
    if complete and 1 not in numbers:
        raise PageError("a topic without its first post")
    question = _question(body, posts[numbers.index(1)], source_id, url, fetched_at) if 1 in numbers else None
    rows = [post for post, number in zip(posts, numbers, strict=True) if number != 1]
    answers, n_unread = guard.answers(rows, lambda post: _answer(post, fetched_at))
    batches = (more[k : k + _BATCH] for k in range(0, len(more), _BATCH))
    queries = (urlencode([("post_ids[]", each) for each in batch]) for batch in batches)
    next_urls = [f"{_forum(url)}/t/{source_id}/posts.json?{query}" for query in queries]
    n_answers = guard.count_of_answers(body, "posts_count")
    return guard.page(question, answers, next_urls, LAYOUT, n_answers, n_unread=n_unread)


def _question(topic: dict[str, Any], post: object, source_id: str, url: str, fetched_at: datetime) -> Question:
    if not _shown(post):
        raise PageError("a question that is hidden or removed")
    slug = guard.get_or_none(topic, "slug", str) or "-"
    # Newer versions give a tag as an object.
    tags = (each if isinstance(each, dict) else {"name": each} for each in guard.get_or_none(topic, "tags", list) or [])
    names = (guard.get(tag, "name", str) for tag in tags)
    category = topic.get("category_id")
    return Question(
        source_id=source_id,
        url=f"{_forum(url)}/t/{slug if _SLUG.fullmatch(slug) else '-'}/{source_id}",
        title=guard.title_of(guard.get(topic, "title", str)),
        description=_text(post),
        topic=None if category is None else guard.number_id(topic, "category_id"),
        subtopics=tuple(dict.fromkeys(name for each in names if (name := " ".join(each.split())))),
        author=_author(post),
        posted=guard.moment(guard.get(post, "created_at", str), fetched_at, "the question"),
    )


def _answer(post: object, fetched_at: datetime) -> Answer | None:
    if not _shown(post):
        return None
    author = _author(post)
    return Answer(
        source_id=guard.number_id(post, "id"),
        author=author,
        author_role="member" if author else "unknown",
        text=_text(post),
        posted=guard.moment_or_none(guard.get_or_none(post, "created_at", str), fetched_at),
        likes=_likes(post),
        recommended=guard.get_or_none(post, "accepted_answer", bool),
    )


def _shown(post: object) -> bool:
    """Whether a post is a person's, and neither hidden by the community nor removed."""
    if guard.get_or_none(post, "post_type", int) not in (None, _BY_A_PERSON):
        return False
    flags = ("hidden", "user_deleted")
    hidden = any(guard.get(post, key, bool) for key in flags if isinstance(post, dict) and key in post)
    return not hidden and guard.get_or_none(post, "deleted_at", str) is None


def _text(post: object) -> str:
    return guard.html_text(guard.get(post, "cooked", str), _NOT_WRITTEN, "a post")


def _author(post: object) -> str | None:
    number: int | None = guard.get_or_none(post, "user_id", int)
    return None if number is None else str(number)


def _likes(post: object) -> int | None:
    """How often a post was liked; a post that lists its actions, and no likes among them, has none."""
    actions = guard.get_or_none(post, "actions_summary", list)
    if actions is None:
        return None
    likes = [action for action in actions if guard.get(action, "id", int) == _LIKE and "count" in action]
    return sum(guard.count(like, "count") for like in likes)


def _forum(url: str) -> str:
    """The address at which the forum begins, without a slash at its end."""
    return guard.forum_of(url, _FORUM, "Discourse")


def _next_url(more: str | None, url: str) -> str | None:
    """The JSON of the next page: the address is a reader's, relative to the host or to the forum's own folder."""
    if more is None:
        return None
    forum = urlsplit(_forum(url))
    try:
        parts = urlsplit(more)
    except ValueError as error:
        raise PageError("the link to the next page leads nowhere") from error
    if parts.scheme or parts.netloc or not parts.path.startswith("/"):
        raise PageError("the link to the next page leads nowhere, or elsewhere")
    path = parts.path if parts.path.startswith(f"{forum.path}/") else forum.path + parts.path
    path = path if path.endswith(".json") else f"{path}.json"
    return urlunsplit((forum.scheme, forum.netloc, path, parts.query, ""))
