"""A group of Douban: twenty-five topics and twenty comments a page. Lists follow the last comment.

`/group/{name}/discussion?start=N` (any name is this one group), `/group/topic/{tid}/?start=N`. Long titles are cut in
lists (the whole one is in `title`), and provinces, invented, stand behind the times.
"""

import re

from forums.forum_page import message_id, most_active, post_of, render
from samples.replica.page import Page, PageRequest, Person, html_page, person, whole_number
from samples.replica.world import Answer, Post, World

TOPICS_A_PAGE = 25
COMMENTS_A_PAGE = 20  # the site's own are a hundred

_LIST = re.compile(r"/group/([\w-]{1,60})/discussion")
_TOPIC = re.compile(r"/group/topic/([0-9]{1,12})/?")


def respond(world: World, request: PageRequest) -> Page | None:
    """The page at this address, None where there is none."""
    start = whole_number(request.query.get("start"), 0)
    values = {"request": request, "start": start, "member": _member}
    if match := _LIST.fullmatch(request.path):
        posts, size = most_active(world), TOPICS_A_PAGE
        shown = posts[start : start + size]
        values |= {"post": None, "posts": shown, "name": match[1], "size": size, "total": len(posts)}
        return html_page(render("douban", **values))
    post = post_of(world, _TOPIC.fullmatch(request.path))
    if post is None:
        return None
    answers, size = post.answers[start : start + COMMENTS_A_PAGE], COMMENTS_A_PAGE
    values |= {"post": post, "answers": answers, "size": size, "total": len(post.answers)}
    return html_page(render("douban", **values))


def _member(message: Post | Answer) -> Person:
    """Who wrote: nobody is anonymous here, so those get an account that was closed."""
    who = person(message.author or f"closed-{message_id(message)}")
    assert who is not None
    return who if message.author else who._replace(name="[已注销]")
