"""A group of Douban: twenty-five topics and a hundred comments a page. Lists follow the last comment.

`/group/{name}/discussion?start=N` (any name is this one group), `/group/topic/{tid}/?start=N`. Long titles are cut in
lists (the whole one is in `title`), comments liked most stand twice (in a list of their own, too), and provinces,
invented, stand behind the times.
"""

import re

from forums.forum_page import most_active, render
from samples.replica.page import Page, PageRequest, Person, html_page, person, whole_number
from samples.replica.world import Answer, Post, World

TOPICS_A_PAGE = 25
COMMENTS_A_PAGE = 100
FIRST_TOPIC = 280_000_000
FIRST_COMMENT = 4_100_000_000
ROBOTS = ("/subject_search", "/search", "/people/")

_LIST = re.compile(r"/group/([\w-]{1,60})/discussion")
_TOPIC = re.compile(r"/group/topic/([0-9]{1,12})/?")


def topic_id(post: Post) -> int:
    """The site's id of a topic."""
    return FIRST_TOPIC + post.number


def comment_id(answer: Answer) -> int:
    """The site's id of a comment."""
    return FIRST_COMMENT + answer.number


def respond(world: World, request: PageRequest) -> Page | None:
    """The page at this address, None where there is none."""
    start = whole_number(request.query.get("start"), 0)
    values = {"request": request, "start": start, "topic_id": topic_id, "comment_id": comment_id, "member": _member}
    if match := _LIST.fullmatch(request.path):
        posts = sorted(most_active(world), key=lambda post: not post.notice)
        shown = posts[start : start + TOPICS_A_PAGE]
        values |= {"post": None, "posts": shown, "name": match[1], "size": TOPICS_A_PAGE, "total": len(posts)}
        return html_page(render("douban", **values))
    match = _TOPIC.fullmatch(request.path)
    post = world.post(int(match[1]) - FIRST_TOPIC) if match else None
    if post is None:
        return None
    liked = sorted((each for each in post.answers if each.likes >= 5), key=lambda each: -each.likes)[:3]
    values |= {
        "post": post,
        "answers": post.answers[start : start + COMMENTS_A_PAGE],
        "popular": liked if start == 0 and len(post.answers) >= 5 else [],
        "size": COMMENTS_A_PAGE,
        "total": len(post.answers),
    }
    return html_page(render("douban", **values))


def _member(message: Post | Answer) -> Person:
    """Who wrote: nobody is anonymous here, so those get an account that was closed."""
    key = topic_id(message) if isinstance(message, Post) else comment_id(message)
    who = person(message.author or f"closed-{key}")
    assert who is not None
    return who if message.author else who._replace(name="[已注销]")
