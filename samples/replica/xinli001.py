"""Xinli001's QA pages in the layouts of 2020 and 2023, as public crawlers saw them (structure only).

`/qa?page=N` newest first, ten a page; `/qa/{qid}?page=N` ten answers a page. In the layout `mixed` odd posts are
in that of 2020.
"""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from samples.replica.page import Page, PageRequest, last_page, not_found, render, sheet, whole_number
from samples.replica.world import Answer, Post, World

LAYOUTS = ("2020", "2023", "mixed")
FIRST_QID = 100_841_600
FIRST_AID = 6_022_017
QUESTIONS_A_PAGE = 10
ANSWERS_A_PAGE = 10
ROBOTS = ("/user/", "/expert/")
_TEMPLATE = Path(__file__).with_name("xinli001.html.j2")


def qid(post: Post) -> int:
    """The site's id of a question."""
    return FIRST_QID + post.number


def aid(answer: Answer) -> int:
    """The site's id of an answer."""
    return FIRST_AID + answer.number


def respond(world: World, request: PageRequest, layout: str) -> Page | None:
    """The page at `/qa…` in a layout of `LAYOUTS`, None where the path is another one."""
    page = max(1, whole_number(request.query.get("page")))
    query = {name: value for name, value in request.query.items() if name not in ("page", "from")}
    values: dict[str, Any] = {"request": request, "page": page, "qid": qid, "aid": aid}
    if request.path in ("/qa", "/qa/"):
        layout = "2023" if layout == "mixed" else layout
        posts = world.newest()
        values |= {"post": None, "posts": sheet(posts, page, QUESTIONS_A_PAGE)}
        pages = last_page(len(posts), QUESTIONS_A_PAGE)
    elif request.path.startswith("/qa/"):
        post = world.post(whole_number(request.path.removeprefix("/qa/").rstrip("/"), 0) - FIRST_QID)
        if post is None:
            return not_found()
        layout = ("2023", "2020")[post.number % 2] if layout == "mixed" else layout
        values |= {"post": post, "answers": sheet(post.answers, page, ANSWERS_A_PAGE)}
        values["similar"] = FIRST_QID + max(1, post.number - 1)
        pages = last_page(len(post.answers), ANSWERS_A_PAGE)
        query = {"from": "houye-dh", **query}
    else:
        return None

    def page_link(number: int) -> str:
        return f"{request.path}?{urlencode({'page': number, **query})}"

    html = render(_TEMPLATE, layout=layout, pages=pages, page_link=page_link, **values)
    # What Alibaba Cloud's wall hands out to count a visitor's requests: nobody has to take it.
    return Page(html.encode(), headers={"Set-Cookie": "acw_tc=replica; Path=/; Max-Age=1800; HttpOnly"})
