"""A board on Discuz! X3.x in the default template, as guests see it: twenty threads and ten messages a page.

`/discuz/…` is in UTF-8, `/discuz-gbk/…` in GBK. Pages link in the form of address of the request. Lists follow the last
message; notices are stuck on top of page 1. Messages have jammers, hidden spans, quotes, notes of edits, bans.
"""

import re
from functools import partial
from typing import Any

from forums.forum_page import most_active, render
from samples.replica.page import Page, PageRequest, figure, last_page, sheet, whole_number
from samples.replica.world import Answer, Post, World
from schemas.ids import digest

THREADS_A_PAGE = 20
MESSAGES_A_PAGE = 10
FIRST_TID = 38_600
FIRST_PID = 53_800
# Two boards: talk has one of its own.
BOARDS = {2: "心理互助", 36: "人际与茶话"}
_TALK = ("人际", "科普", "热点")
ROBOTS = (
    *("/api/", "/data/", "/source/", "/template/default/", "/config/", "/uc_client/", "/uc_server/"),
    *("/admin.php", "/search.php", "/member.php", "/misc.php", "/connect.php", "/forum.php?mod=redirect*"),
    *("/forum.php?mod=post*", "/home.php?mod=spacecp*", "/*?mod=misc*", "/*?mod=attachment*", "/*mobile=yes*"),
)

_FORUM = re.compile(r"/forum-([0-9]{1,6})-([0-9]{1,6})\.html")
_THREAD = re.compile(r"/thread-([0-9]{1,9})-([0-9]{1,6})-([0-9]{1,6})\.html")


def tid(post: Post) -> int:
    """The site's id of a thread."""
    return FIRST_TID + post.number


def pid(message: Post | Answer) -> int:
    """The site's id of a message: the question is one too."""
    return FIRST_PID + 2 * message.number + isinstance(message, Answer)


def board_of(post: Post) -> int:
    """The board in which a post stands."""
    return 36 if post.topic in _TALK else 2


def respond(world: World, request: PageRequest, charset: str) -> Page | None:
    """The page at this address, None where there is none."""
    query = request.query
    mod = query.get("mod") if request.path == "/forum.php" else None
    if match := _FORUM.fullmatch(request.path) or _THREAD.fullmatch(request.path):
        number, page = int(match[1]), int(match[2])
    elif mod in ("forumdisplay", "viewthread"):
        number = whole_number(query.get("fid" if mod == "forumdisplay" else "tid"), 0)
        page = whole_number(query.get("page"))
    else:
        return None
    rewritten = match is not None
    is_forum = mod == "forumdisplay" if match is None else match.re is _FORUM
    values = _forum(world, number, page, rewritten) if is_forum else _thread(world, number, page, rewritten)
    html = render(
        "discuz",
        request=request,
        charset=charset,
        tid=tid,
        pid=pid,
        digest=digest,
        last_page=last_page,
        views=lambda post: 30 + len(post.answers) + figure(2000, "views", post.number),
        size=MESSAGES_A_PAGE,
        thread_link=partial(_thread_link, rewritten),
        forum_link=partial(_forum_link, rewritten),
        space_link=lambda uid: f"space-uid-{uid}.html" if rewritten else f"home.php?mod=space&uid={uid}",
        **values,
    )
    # What GBK has no place for stands as a character reference, as browsers send it to such a board.
    return Page(html.encode(charset, "xmlcharrefreplace"), f"text/html; charset={charset}")


def _forum(world: World, fid: int, page: int, rewritten: bool) -> dict[str, Any]:
    if fid not in BOARDS:
        return _message("抱歉，指定的版块不存在")
    posts = [post for post in most_active(world) if board_of(post) == fid]
    normal = [post for post in posts if not post.notice]
    return {
        **_page(BOARDS[fid], None, fid, page, last_page(len(normal), THREADS_A_PAGE)),
        "pages_link": _forum_link(rewritten, fid, "PAGE").split("PAGE"),
        "stuck": [post for post in posts if post.notice] if page <= 1 else [],
        "posts": sheet(normal, max(1, page), THREADS_A_PAGE),
    }


def _thread(world: World, thread: int, page: int, rewritten: bool) -> dict[str, Any]:
    post = world.post(thread - FIRST_TID)
    if post is None:
        return _message("抱歉，指定的主题不存在或已被删除或正在被审核")
    messages: list[Post | Answer] = [post, *post.answers]
    pages = last_page(len(messages), MESSAGES_A_PAGE)
    # Beyond the last page Discuz shows the last one.
    page = min(max(1, page), pages)
    return {
        **_page(post.title, post, board_of(post), page, pages),
        "pages_link": _thread_link(rewritten, post, "PAGE").split("PAGE"),
        "messages": sheet(list(enumerate(messages)), page, MESSAGES_A_PAGE),
    }


def _page(title: str, post: Post | None, fid: int, page: int, pages: int) -> dict[str, Any]:
    """What every page has."""
    place = {"fid": fid, "board": BOARDS[fid], "page": page, "pages": pages}
    return {"title": title, "message": "", "post": post, **place}


def _message(words: str) -> dict[str, Any]:
    """What Discuz shows in place of what there is not: with status 200."""
    return {"title": "提示信息", "message": words}


def _thread_link(rewritten: bool, post: Post, page: int | str) -> str:
    if rewritten:
        return f"thread-{tid(post)}-{page}-1.html"
    link = f"forum.php?mod=viewthread&tid={tid(post)}&extra=page%3D1"
    return link if page == 1 else f"{link}&page={page}"


def _forum_link(rewritten: bool, fid: int, page: int | str) -> str:
    if rewritten:
        return f"forum-{fid}-{page}.html"
    link = f"forum.php?mod=forumdisplay&fid={fid}"
    return link if page == 1 else f"{link}&page={page}"
