"""A board on Discuz! X3.x in the default template, as guests see it: twenty threads and ten messages a page.

`/discuz/…` is in UTF-8, `/discuz-gbk/…` in GBK. Pages link in the form of address of the request. Lists follow the last
message; notices are stuck on top of page 1. Messages have jammers, hidden spans, quotes, notes of edits, bans.
"""

import re
from datetime import datetime
from functools import partial

from forums.forum_page import FIRST_TOPIC, most_active, render
from samples.replica.page import Page, PageRequest, last_page, local, sheet, whole_number
from samples.replica.world import Answer, Post, World
from schemas.ids import digest

THREADS_A_PAGE = 20
MESSAGES_A_PAGE = 10
# Two boards: talk has one of its own.
BOARDS = {2: "心理互助", 36: "人际与茶话"}
_TALK = ("人际", "科普", "热点")
_REWRITTEN = re.compile(r"/(forum|thread)-([0-9]{1,9})-([0-9]{1,6})(?:-[0-9]{1,6})?\.html")


def board_of(post: Post) -> int:
    """The board in which a post stands."""
    return 36 if post.topic in _TALK else 2


def respond(world: World, request: PageRequest, charset: str) -> Page | None:
    """The page at this address, None where there is none."""
    query, rewritten = request.query, _REWRITTEN.fullmatch(request.path)
    kind, number, page = (
        rewritten.groups() if rewritten else ("", query.get("fid") or query.get("tid"), query.get("page"))
    )
    is_forum = kind == "forum" or query.get("mod") == "forumdisplay"
    number, page = whole_number(number, 0), whole_number(page)
    post = None if is_forum else world.post(number - FIRST_TOPIC)
    values = {}
    if is_forum and number in BOARDS:
        posts = [post for post in most_active(world) if board_of(post) == number]
        normal = [post for post in posts if not post.notice]
        values |= {"title": BOARDS[number], "fid": number, "posts": sheet(normal, page, THREADS_A_PAGE)}
        values |= {"stuck": posts[: -len(normal)] if page == 1 else [], "pages": last_page(len(normal), THREADS_A_PAGE)}
    elif post:
        messages: list[Post | Answer] = [post, *post.answers]
        values |= {"title": post.title, "fid": board_of(post), "pages": last_page(len(messages), MESSAGES_A_PAGE)}
        values |= {"messages": sheet(list(enumerate(messages)), page, MESSAGES_A_PAGE)}
    else:
        return None
    html = render(
        "discuz", request=request, charset=charset, post=post, number=number, page=page, boards=BOARDS, digest=digest,
        exact=_exact, last_page=last_page, size=MESSAGES_A_PAGE, to=partial(_link, rewritten is not None), **values,
    )  # fmt: skip
    # What GBK has no place for stands as a character reference, as browsers send it to such a board.
    return Page(html.encode(charset, "xmlcharrefreplace"), f"text/html; charset={charset}")


def _exact(at: datetime) -> str:
    """Y-n-j H:i:s: without leading zeros in the date."""
    day = local(at)
    return f"{day.year}-{day.month}-{day.day} {day:%H:%M:%S}"


def _link(rewritten: bool, kind: str, number: int, page: int) -> str:
    if rewritten:
        return f"{kind}-{number}-{page}{'-1' if kind == 'thread' else ''}.html"
    named = {"forum": f"mod=forumdisplay&fid={number}", "thread": f"mod=viewthread&tid={number}&extra=page%3D1"}
    return f"forum.php?{named[kind]}" + (f"&page={page}" if page > 1 else "")
