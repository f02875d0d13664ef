"""A forum on NodeBB, in JSON, pages from 1: `/api/recent?page=N`, and `/api/topic/{tid}?page=N` for a topic."""

import re
from html import escape

from forums.forum_page import hidden, iso, json_page, message_id, most_active, post_of, topic_id, words_of
from samples.replica.page import Page, PageRequest, last_page, person, sheet, whole_number
from samples.replica.world import Answer, Post, World

A_PAGE = 20
_TOPIC = re.compile(r"/api/topic/([0-9]{1,9})")


def respond(world: World, request: PageRequest) -> Page | None:
    """The JSON at this address, None where there is none."""
    page = max(1, whole_number(request.query.get("page")))
    if request.path == "/api/recent":
        posts = most_active(world)
        topics = [_head(post) for post in sheet(posts, page, A_PAGE)]
        return json_page({"topics": topics, "pagination": _pagination(page, len(posts))})
    match = _TOPIC.fullmatch(request.path)
    post = post_of(world, match)
    return None if post is None else _topic(post, page)


def _head(post: Post) -> dict[str, object]:
    return {
        "tid": topic_id(post),
        "title": escape(post.title),
        "mainPid": message_id(post),
        "postcount": 1 + len(post.answers),
        "timestampISO": iso(post.posted_at),
        "lastposttimeISO": iso(post.active_at),
        "pinned": int(post.notice),
        "deleted": 0,
        "tags": [{"value": tag, "class": "tag"} for tag in (post.topic, *post.subtopics)],
    }


def _topic(post: Post, page: int) -> Page:
    messages: list[Post | Answer] = [post, *post.answers]
    posts = [_post(message) for message in sheet(messages, page, A_PAGE)]
    pagination = _pagination(page, len(messages))
    return json_page(_head(post) | {"category": {"name": "心理互助"}, "posts": posts, "pagination": pagination})


def _post(message: Post | Answer) -> dict[str, object]:
    who = person(message.author)
    paragraphs = "\n".join(f'<p dir="auto">{escape(line)}</p>' for line in words_of(message).split("\n"))
    return {
        "pid": message_id(message),
        "uid": who.uid if who else 0,  # 0: a guest's
        "content": "[[topic:post_is_deleted]]" if hidden(message) else paragraphs,
        "timestampISO": iso(message.posted_at),
        "deleted": int(hidden(message)),
        "upvotes": message.likes if isinstance(message, Answer) else 0,
        "user": {"username": who.name if who else "游客", "picture": "/assets/invented.png"},
    }


def _pagination(page: int, n_items: int) -> dict[str, object]:
    return {"next": {"page": page + 1, "active": page < last_page(n_items, A_PAGE)}}
