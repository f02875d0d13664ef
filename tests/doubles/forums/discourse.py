"""A forum on Discourse, in JSON: thirty topics a page, the first twenty posts of a topic, the others by their ids.

`/latest.json?page=N` (from 0), `/t/{id}.json` is a topic, `/t/{id}/posts.json?post_ids[]=…` more of its posts.
"""

import re
from html import escape
from urllib.parse import parse_qsl

from forums.forum_page import hidden, iso, json_page, message_id, most_active, post_of, topic_id, words_of
from samples.replica.page import Page, PageRequest, figure, person, sheet, whole_number
from samples.replica.world import Answer, Post, World

TOPICS_A_PAGE = 30
POSTS_A_PAGE = 20
_TOPIC = re.compile(r"/t/([0-9]{1,9})(/posts)?\.json")


def respond(world: World, request: PageRequest) -> Page | None:
    """The JSON at this address, None where there is none."""
    if request.path == "/latest.json":
        page, posts = whole_number(request.query.get("page"), 0), most_active(world)
        topics = [_listed(post) for post in sheet(posts, page + 1, TOPICS_A_PAGE)]
        more = f"/latest?no_definitions=true&page={page + 1}" if (page + 1) * TOPICS_A_PAGE < len(posts) else None
        return json_page({"topic_list": {"topics": topics, "more_topics_url": more}})
    match = _TOPIC.fullmatch(request.path)
    post = post_of(world, match)
    if match is None or post is None:
        return None
    posts = [_post(each, k, post) for k, each in enumerate([post, *post.answers], 1)]
    if match[2]:
        wanted = {value for key, value in parse_qsl(request.query_string) if key == "post_ids[]"}
        return json_page({"id": topic_id(post), "post_stream": {"posts": [p for p in posts if str(p["id"]) in wanted]}})
    stream = {"posts": posts[:POSTS_A_PAGE], "stream": [each["id"] for each in posts]}
    return json_page(_listed(post) | {"post_stream": stream})


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
        "tags": list(post.subtopics),
        "category_id": 5,
    }


def _post(message: Post | Answer, number: int, post: Post) -> dict[str, object]:
    answer = message if isinstance(message, Answer) else None
    # Discourse lets nobody write without an account: who is anonymous has one for the day.
    who = person(message.author or f"anonymous-{message_id(message)}")
    assert who is not None
    quote = ""
    if answer and figure(7, "quote", message_id(message)) == 0:
        quote = f'<aside class="quote no-group"><blockquote>\n<p>{escape(post.quote)}</p>\n</blockquote>\n</aside>\n'
    cooked = quote + "\n".join(f"<p>{escape(line)}</p>" for line in words_of(message).split("\n"))
    return {
        "id": message_id(message),
        "username": f"invented_{who.uid}",
        "created_at": iso(message.posted_at),
        "cooked": "<p>这条内容已被社区隐藏。</p>" if hidden(message) else cooked,
        "post_number": number,
        "post_type": 1,
        "user_id": who.uid,
        "hidden": hidden(message),
        "deleted_at": None,
        "accepted_answer": bool(answer and answer.recommended),
        "actions_summary": [{"id": 2, "count": answer.likes}] if answer else [],
    }
