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
        raise UnknownLayout("no `topic_list`", url)
    topics = body["topic_list"]
    listed = (_listed(topic, url, fetched_at) for topic in guard.get(topics, "topics", list, url))
    return guard.list_page(listed, _next_url(guard.get_or_none(topics, "more_topics_url", str, url), url))


def _listed(topic: object, url: str, fetched_at: datetime) -> Listed:
    source_id = guard.number_id(topic, "id", url)
    active = guard.get_or_none(topic, "last_posted_at", str, url)
    return Listed(
        source_id=source_id,
        url=_forum(url) + f"/t/{source_id}.json",
        # The highest number goes up with every post, also where another was removed.
        fingerprint=f"{guard.count(topic, 'posts_count', url)} {guard.count(topic, 'highest_post_number', url)}",
        posted=guard.moment_or_none(guard.get(topic, "created_at", str, url), fetched_at),
        active=guard.moment_or_none(active, fetched_at),
        pinned=any(guard.get_or_none(topic, key, bool, url) or False for key in ("pinned", "pinned_globally")),
    )


def post_page(body: object, url: str, fetched_at: datetime) -> PostPage:
    """A topic, or more posts of one."""
    if not isinstance(body, dict) or not isinstance(body.get("post_stream"), dict):
        raise UnknownLayout("no `post_stream`", url)
    source_id = guard.own_id(body, "id", _TOPIC_PATH, url)
    stream = body["post_stream"]
    posts = guard.get(stream, "posts", list, url)
    ids = [guard.number_id(post, "id", url) for post in posts]
    guard.distinct(ids, "a post", url)
    more = [guard.number_id({"id": each}, "id", url) for each in guard.get_or_none(stream, "stream", list, url) or []]
    guard.distinct(more, "an id of a post", url)
    complete = bool(more)
    if complete and not set(ids) <= set(more):  # its id is wrong: the right one would come as one post more
        raise PageError("a post that the topic does not list", url)
    more = [each for each in more if each not in set(ids)]
    numbers = [guard.count(post, "post_number", url) for post in posts]
    guard.distinct([str(number) for number in numbers], "a number of a post", url)
    if complete and 1 not in numbers:
        raise PageError("a topic without its first post", url)
    answers = [_answer(post, url, fetched_at) for post, number in zip(posts, numbers, strict=True) if number != 1]
    return guard.page(
        PostPage(
            question=_question(body, posts[numbers.index(1)], source_id, url, fetched_at) if 1 in numbers else None,
            answers=tuple(answer for answer in answers if answer is not None and answer.text),
            next_urls=tuple(_posts_url(source_id, more[k : k + _BATCH], url) for k in range(0, len(more), _BATCH)),
            layout=LAYOUT,
            n_answers=guard.count_of_answers(body, "posts_count", url),
            n_found=len(answers),
        ),
        url,
    )


def _question(topic: dict[str, Any], post: object, source_id: str, url: str, fetched_at: datetime) -> Question:
    if not _shown(post, url):
        raise PageError("a question that is hidden or removed", url)
    slug = guard.get_or_none(topic, "slug", str, url) or "-"
    tags = guard.get_or_none(topic, "tags", list, url) or []
    category = topic.get("category_id")
    return Question(
        source_id=source_id,
        url=f"{_forum(url)}/t/{slug if _SLUG.fullmatch(slug) else '-'}/{source_id}",
        title=guard.title_of(guard.get(topic, "title", str, url), url),
        description=_text(post, url),
        topic=None if category is None else guard.number_id(topic, "category_id", url),
        subtopics=tuple(dict.fromkeys(tag for each in tags if (tag := _tag(each, url)))),
        author=_author(post, url),
        posted=guard.moment(guard.get(post, "created_at", str, url), fetched_at, "the question", url),
    )


def _answer(post: object, url: str, fetched_at: datetime) -> Answer | None:
    if not _shown(post, url):
        return None
    author = _author(post, url)
    return Answer(
        source_id=guard.number_id(post, "id", url),
        author=author,
        author_role="member" if author else "unknown",
        text=_text(post, url),
        posted=guard.moment_or_none(guard.get_or_none(post, "created_at", str, url), fetched_at),
        likes=_likes(post, url),
        recommended=guard.get_or_none(post, "accepted_answer", bool, url),
    )


def _shown(post: object, url: str) -> bool:
    """Whether a post is a person's, and neither hidden by the community nor removed."""
    if guard.get_or_none(post, "post_type", int, url) not in (None, _BY_A_PERSON):
        return False
    flags = ("hidden", "user_deleted")
    hidden = any(guard.get(post, key, bool, url) for key in flags if isinstance(post, dict) and key in post)
    return not hidden and guard.get_or_none(post, "deleted_at", str, url) is None


def _text(post: object, url: str) -> str:
    return guard.html_text(guard.get(post, "cooked", str, url), _NOT_WRITTEN, "a post", url)


def _author(post: object, url: str) -> str | None:
    number: int | None = guard.get_or_none(post, "user_id", int, url)
    return None if number is None else str(number)


def _likes(post: object, url: str) -> int | None:
    """How often a post was liked; a post that lists its actions, and no likes among them, has none."""
    actions = guard.get_or_none(post, "actions_summary", list, url)
    if actions is None:
        return None
    likes = [action for action in actions if guard.get(action, "id", int, url) == _LIKE and "count" in action]
    return sum(guard.count(like, "count", url) for like in likes)


def _tag(tag: object, url: str) -> str:
    """A tag, which newer versions give as an object."""
    name: str = guard.get(tag, "name", str, url) if isinstance(tag, dict) else guard.get({"tag": tag}, "tag", str, url)
    return " ".join(name.split())


def _forum(url: str) -> str:
    """The address at which the forum begins, without a slash at its end."""
    return guard.forum_of(url, _FORUM, "Discourse")


def _posts_url(topic: str, ids: list[str], url: str) -> str:
    return f"{_forum(url)}/t/{topic}/posts.json?{urlencode([('post_ids[]', i) for i in ids])}"


def _next_url(more: str | None, url: str) -> str | None:
    """The JSON of the next page: the address is a reader's, relative to the host or to the forum's own folder."""
    if more is None:
        return None
    forum = urlsplit(_forum(url))
    try:
        parts = urlsplit(more)
    except ValueError as error:
        raise PageError("the link to the next page leads nowhere", url) from error
    if parts.scheme or parts.netloc or not parts.path.startswith("/"):
        raise PageError("the link to the next page leads nowhere, or elsewhere", url)
    path = parts.path if parts.path.startswith(f"{forum.path}/") else forum.path + parts.path
    path = path if path.endswith(".json") else f"{path}.json"
    return urlunsplit((forum.scheme, forum.netloc, path, parts.query, ""))
