"""A forum on Discourse, in JSON: thirty topics a page, the first twenty posts of a topic, the others by their ids.

`/latest.json?page=N` and `/c/{slug}/{id}.json` follow the last post (pages from 0), `/t/{id}.json` is a topic,
`/t/{id}/posts.json?post_ids[]=…` more of its posts.
"""

import re
from html import escape
from urllib.parse import parse_qsl, urlencode

from forums.forum_page import hidden, iso, json_page, most_active
from samples.replica.page import Page, PageRequest, figure, person, whole_number
from samples.replica.world import Answer, Post, World
from schemas.taxonomy import TAXONOMY

TOPICS_A_PAGE = 30
POSTS_A_PAGE = 20
FIRST_TOPIC = 4_000
FIRST_POST = 9_000
# A category for each main topic.
CATEGORIES = {5 + k: name for k, name in enumerate(TAXONOMY)}
_IDS = {name: number for number, name in CATEGORIES.items()}
ROBOTS = (
    *("/admin/", "/auth/", "/email/", "/search", "/session", "/user-api-key", "/*?api_key*", "/badges", "/my"),
    *("/tag/*/l", "/g", "/t/*/*.rss", "/c/*.rss"),
)

_CATEGORY = re.compile(r"/c/(?:[^/]+/)?([0-9]{1,6})(?:/l/latest)?\.json")
_TOPIC = re.compile(r"/t/(?:[^/]+/)?([0-9]{1,9})\.json")
_POSTS = re.compile(r"/t/([0-9]{1,9})/posts\.json")
_NOTE = {"replica": "everything here is invented"}


def topic_id(post: Post) -> int:
    """The site's id of a topic."""
    return FIRST_TOPIC + post.number


def post_id(message: Post | Answer) -> int:
    """The site's id of a post: the question is one too."""
    return FIRST_POST + 2 * message.number + isinstance(message, Answer)


def respond(world: World, request: PageRequest) -> Page | None:
    """The JSON at this address, None where there is none."""
    if request.path == "/latest.json":
        return _list(world, request, "/latest", None)
    if match := _CATEGORY.fullmatch(request.path):
        category = int(match[1])
        return _list(world, request, request.path.removesuffix(".json"), category) if category in CATEGORIES else None
    match = _TOPIC.fullmatch(request.path) or _POSTS.fullmatch(request.path)
    post = world.post(int(match[1]) - FIRST_TOPIC) if match else None
    if post is None:
        return None
    messages: list[tuple[int, Post | Answer]] = list(enumerate([post, *post.answers]))
    ids = [post_id(each) for _, each in messages]
    if request.path.endswith("/posts.json"):
        wanted = {value for key, value in parse_qsl(request.query_string) if key == "post_ids[]"}
        messages = [(k, each) for k, each in messages if str(post_id(each)) in wanted]
    stream: dict[str, object] = {"posts": [_post(each, k, post) for k, each in messages[:POSTS_A_PAGE]]}
    if request.path.endswith("/posts.json"):
        return json_page({**_NOTE, "post_stream": stream, "id": topic_id(post)})
    return json_page({**_NOTE, "post_stream": {**stream, "stream": ids}, **_listed(post)})


def _list(world: World, request: PageRequest, path: str, category: int | None) -> Page:
    page = whole_number(request.query.get("page"), 0)
    posts = [post for post in most_active(world) if category in (None, _IDS[post.topic])]
    posts.sort(key=lambda post: not post.notice)
    start = page * TOPICS_A_PAGE
    topics: dict[str, object] = {"topics": [_listed(post) for post in posts[start : start + TOPICS_A_PAGE]]}
    if start + TOPICS_A_PAGE < len(posts):
        kept = {key: value for key, value in request.query.items() if key != "page"}
        topics["more_topics_url"] = f"{path}?{urlencode({'no_definitions': 'true', **kept, 'page': page + 1})}"
    return json_page({**_NOTE, "topic_list": topics})


def _listed(post: Post) -> dict[str, object]:
    return {
        "id": topic_id(post),
        "title": post.title,
        "slug": "topic",
        "posts_count": 1 + len(post.answers),
        "highest_post_number": 1 + len(post.answers),
        "created_at": iso(post.posted_at),
        "last_posted_at": iso(post.active_at),
        "pinned": post.notice,
        "pinned_globally": False,
        "tags": list(post.subtopics),
        "category_id": _IDS[post.topic],
    }


def _post(message: Post | Answer, k: int, post: Post) -> dict[str, object]:
    answer = message if isinstance(message, Answer) else None
    # Discourse lets nobody write without an account: who is anonymous has one for the day.
    who = person(message.author or f"anonymous-{post_id(message)}", answer.author_role if answer else "member")
    assert who is not None
    gone = answer is not None and hidden(answer)
    likes = answer.likes if answer else 0
    return {
        "id": post_id(message),
        "name": who.name,
        "username": f"invented_{who.uid}",
        "created_at": iso(message.posted_at),
        "cooked": "<p>这条内容已被社区隐藏。</p>" if gone else _cooked(message, post),
        "post_number": k + 1,
        "post_type": 1,
        "user_id": who.uid,
        "user_title": "虚构的咨询师" if who.professional else None,
        "hidden": gone,
        "user_deleted": False,
        "deleted_at": None,
        "accepted_answer": bool(answer and answer.recommended),
        "actions_summary": [{"id": 2, "count": likes}] if likes else [],
    }


def _cooked(message: Post | Answer, post: Post) -> str:
    words = message.description if isinstance(message, Post) else message.text
    quote = ""
    if isinstance(message, Answer) and figure(7, "quote", post_id(message)) == 0:
        quote = (
            f'<aside class="quote no-group" data-username="invented" data-post="1" data-topic="{topic_id(post)}">\n'
            '<div class="title"><div class="quote-controls"></div>invented:</div>\n<blockquote>\n'
            f"<p>{escape(post.quote)}</p>\n</blockquote>\n</aside>\n"
        )
    return quote + "\n".join(f"<p>{escape(line)}</p>" for line in words.split("\n"))
