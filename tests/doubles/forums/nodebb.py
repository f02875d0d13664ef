"""A forum on NodeBB, in JSON: twenty topics and twenty posts a page, pages from 1.

`/api/category/2/…?page=N` and `/api/recent` follow the last post; `/api/topic/{tid}/…?page=N` is a topic.
"""

import re
from html import escape

from forums.forum_page import hidden, iso, json_page, most_active
from samples.replica.page import Page, PageRequest, last_page, person, sheet, whole_number
from samples.replica.world import Answer, Post, World

A_PAGE = 20
FIRST_TID = 2_000
FIRST_PID = 6_000
CATEGORY = {"cid": 2, "name": "心理互助", "slug": "2/xinli", "description": "虚构"}
ROBOTS = ("/admin/", "/reset/", "/compose")

_CATEGORY = re.compile(r"/api/category/([0-9]{1,6})(?:/.*)?")
_TOPIC = re.compile(r"/api/topic/([0-9]{1,9})(?:/.*)?")


def tid(post: Post) -> int:
    """The site's id of a topic."""
    return FIRST_TID + post.number


def pid(message: Post | Answer) -> int:
    """The site's id of a post: the question is one too."""
    return FIRST_PID + 2 * message.number + isinstance(message, Answer)


def respond(world: World, request: PageRequest) -> Page | None:
    """The JSON at this address, None where there is none."""
    match = _CATEGORY.fullmatch(request.path)
    if request.path == "/api/recent" or (match and int(match[1]) == CATEGORY["cid"]):
        return _list(world, request)
    match = _TOPIC.fullmatch(request.path)
    post = world.post(int(match[1]) - FIRST_TID) if match else None
    return None if post is None else _topic(post, request)


def _list(world: World, request: PageRequest) -> Page:
    page = max(1, whole_number(request.query.get("page")))
    posts = sorted(most_active(world), key=lambda post: not post.notice)
    return json_page(
        {
            **CATEGORY,
            "replica": "everything here is invented",
            "topics": [_head(post) for post in sheet(posts, page, A_PAGE)],
            "pagination": _pagination(page, len(posts)),
        }
    )


def _head(post: Post) -> dict[str, object]:
    return {
        "tid": tid(post),
        "title": escape(post.title),
        "mainPid": pid(post),
        "postcount": 1 + len(post.answers),
        "timestampISO": iso(post.posted_at),
        "lastposttimeISO": iso(post.active_at),
        "pinned": int(post.notice),
        "deleted": 0,
        "tags": [{"value": tag, "class": "tag"} for tag in (post.topic, *post.subtopics)],
    }


def _topic(post: Post, request: PageRequest) -> Page:
    page = max(1, whole_number(request.query.get("page")))
    messages: list[Post | Answer] = [post, *post.answers]
    shown = sheet(messages, page, A_PAGE)
    if not shown:
        return json_page({"status": "not-found"}, 404)
    return json_page(
        {
            **_head(post),
            "replica": "everything here is invented",
            "category": CATEGORY,
            "posts": [_post(message) for message in shown],
            "pagination": _pagination(page, len(messages)),
        }
    )


def _post(message: Post | Answer) -> dict[str, object]:
    answer = message if isinstance(message, Answer) else None
    who = person(message.author)
    gone = answer is not None and hidden(answer)
    words = message.description if isinstance(message, Post) else message.text
    paragraphs = "\n".join(f'<p dir="auto">{escape(line)}</p>' for line in words.split("\n"))
    return {
        "pid": pid(message),
        "uid": who.uid if who else 0,  # 0: a guest's
        "content": "[[topic:post_is_deleted]]" if gone else paragraphs,
        "timestampISO": iso(message.posted_at),
        "deleted": int(gone),
        "upvotes": answer.likes if answer else 0,
        "user": {"username": who.name if who else "游客", "picture": "/assets/invented.png"},
    }


def _pagination(page: int, n_items: int) -> dict[str, object]:
    pages = last_page(n_items, A_PAGE)
    return {"pageCount": pages, "next": {"page": min(pages, page + 1), "active": page < pages}}
