"""Xinli001's QA pages in the layouts of 2020 and 2023, as public crawlers saw them (structure only).

`/qa?page=N` newest first, ten a page; `/qa/{qid}?page=N` ten answers a page. In the layout `mixed` odd posts are
in that of 2020.
"""

from urllib.parse import urlencode

from samples.replica.page import (
    NOTE,
    Page,
    PageRequest,
    figure,
    html_page,
    lines,
    not_found,
    person,
    text,
    whole_number,
    xinli001_time,
)
from samples.replica.posts import Answer, Post
from samples.replica.world import World

LAYOUTS = ("2020", "2023", "mixed")
FIRST_QID = 100_841_600
FIRST_AID = 6_022_017
QUESTIONS_A_PAGE = 10
ANSWERS_A_PAGE = 10
ROBOTS = ("/user/", "/expert/")

_SITE = "https://www.xinli001.com"
_AVATAR = "https://ossimg.example.com/replica/avatar.png"
_INCOGNITO = "https://ossimg.example.com/replica/yiapp/v4.8/incognito.png"


def qid(post: Post) -> int:
    """The site's id of a question."""
    return FIRST_QID + post.number


def aid(answer: Answer) -> int:
    """The site's id of an answer."""
    return FIRST_AID + answer.number


def respond(world: World, request: PageRequest, layout: str) -> Page | None:
    """The page at `/qa…` in a layout of `LAYOUTS`, None where the path is another one."""
    page = None
    if request.path in ("/qa", "/qa/"):
        page = _list(world, request, "2023" if layout == "mixed" else layout)
    elif request.path.startswith("/qa/"):
        post = world.post(whole_number(request.path.removeprefix("/qa/").rstrip("/"), 0) - FIRST_QID)
        if post is None:
            return not_found()
        page = _detail(post, request, ("2023", "2020")[post.number % 2] if layout == "mixed" else layout)
    if page is not None:
        # What Alibaba Cloud's wall hands out to count a visitor's requests: nobody has to take it.
        page.headers["Set-Cookie"] = "acw_tc=replica; Path=/; Max-Age=1800; HttpOnly"
    return page


def _list(world: World, request: PageRequest, layout: str) -> Page:
    page = max(1, whole_number(request.query.get("page")))
    posts = world.newest()
    shown = posts[(page - 1) * QUESTIONS_A_PAGE : page * QUESTIONS_A_PAGE]
    rows = [_row_2020(post, request) if layout == "2020" else _row_2023(post, request) for post in shown]
    content = f'<ul class="content">\n{"".join(rows)}</ul>'
    query = {name: value for name, value in request.query.items() if name != "page"}
    pager = _pager(request.path, query, page, page * QUESTIONS_A_PAGE < len(posts))
    tabs = "".join(
        f'<p attr-id="{name}"><a class="common-a" href="/qa?object_name={target}">{title}</a></p>'
        for name, target, title in (
            ("answer", "answer", "推荐回答"),
            ("remque", "question", "推荐问题"),
            ("newque", "last", "最新问题"),
            ("essence", "cream", "30天精华"),
        )
    )
    if layout == "2020":
        content = f'<div class="show-info">\n{content}\n</div>'
    left = f'<div class="ans-bar">{tabs}</div>\n{content}\n<div class="page"><nav>{pager}</nav></div>'
    return html_page(_document("心理问答", left))


def _row_2020(post: Post, request: PageRequest) -> str:
    href = f"/qa/{qid(post)}?from=shouye"
    avatar = _INCOGNITO if post.author is None else _AVATAR
    return (
        f'<li>\n<p class="title">\n<a class="common-a"><img src="{avatar}"></a>\n'
        f'<a class="common-a" target="_blank" href="{href}"><span>\n {text(post.title)}\n</span></a>\n'
        f'<a target="_blank" href="{href}"><strong>去回答</strong></a>\n</p>\n'
        f'<a class="common-a" target="_blank" href="{href}"><p class="text">\n{_excerpt(post)}\n</p></a>\n'
        f"{_row_label(post, request)}</li>\n"
    )


def _row_2023(post: Post, request: PageRequest) -> str:
    href = f"/qa/{qid(post)}?page=1&amp;from=houye-dh"
    return (
        f'<li>\n<p class="title"><span><a class="common-a" target="_blank" href="{href}">\n {text(post.title)}\n</a>'
        f'</span></p>\n<p class="text">\n {_excerpt(post)}\n</p>\n{_row_label(post, request)}</li>\n'
    )


def _row_label(post: Post, request: PageRequest) -> str:
    useful = sum(answer.likes for answer in post.answers)
    when = xinli001_time(post.posted_at, request.now)
    return f'<p class="label"><span>回答 {len(post.answers)} · 有用 {useful}   {when}</span></p>\n'


def _excerpt(post: Post) -> str:
    words = " ".join(post.description.split())
    return text(words if len(words) <= 80 else words[:80] + "...")


def _pager(path: str, query: dict[str, str], page: int, more: bool) -> str:
    def link(number: int, shown: str, rel: str = "") -> str:
        href = text(f"{path}?{urlencode({'page': number, **query})}")
        return f'<li><a href="{href}"{rel}>{shown}</a></li>'

    before = link(page - 1, "«", ' rel="prev"') if page > 1 else '<li class="disabled"><span>«</span></li>'
    after = link(page + 1, "»", ' rel="next"') if more else '<li class="disabled"><span>»</span></li>'
    numbers = "".join(link(number, str(number)) for number in range(max(1, page - 2), page))
    return f'<ul class="pagination">{before}{numbers}<li class="active"><span>{page}</span></li>{after}</ul>'


def _detail(post: Post, request: PageRequest, layout: str) -> Page:
    page, number, n = max(1, whole_number(request.query.get("page"))), qid(post), len(post.answers)
    answers = post.answers[(page - 1) * ANSWERS_A_PAGE : page * ANSWERS_A_PAGE]
    query = {name: value for name, value in request.query.items() if name not in ("page", "from")}
    pager = _pager(request.path, {"from": "houye-dh", **query}, page, page * ANSWERS_A_PAGE < n)
    pages = f'<div class="page"><nav>{pager}</nav></div>' if n > ANSWERS_A_PAGE else ""
    tags = (post.topic, *post.subtopics)
    reads = f'<span class="absoulte-img"><img src="{_AVATAR}"><a>{20 + n + figure(900, "reads", number)}阅读</a></span>'
    when = f'<p class="read-capacity"><span>{xinli001_time(post.posted_at, request.now)}</span>{reads}</p>'
    body = f'<p class="text">\n{lines(post.description)}\n</p>'
    if layout == "2020":
        head = f'<p class="title">{_asker(post)}\n<span>{text(post.title)}</span>\n<strong>{n}个回答</strong></p>'
        labels = "".join(f'<a class="common-a" href="/qa?title={text(tag)}"><li>{text(tag)}</li></a>' for tag in tags)
    else:
        head = f'<div class="title">{_asker(post)}\n<h1>{text(post.title)}</h1>\n<strong>{n}个回答</strong></div>'
        labels = "".join(f"<li>{text(tag)}</li>" for tag in tags)
    left = (
        f'<div class="content">\n{head}\n{when}\n{body}\n<ul class="label detail-tag">{labels}</ul>\n</div>\n'
        f'<div class="comment-reply">\n<div class="hug" data-objectid="{number}"><p><span>给TA抱抱</span>'
        f"<a><font>{figure(30, 'hug', number)}</font> 个抱抱</a></p></div>\n"
        f'<div class="collect" data-question-id="{number}"><p><span>收藏问题</span>'
        f'<a><font>{figure(12, "collect", number)}</font> 个收藏</a></p></div>\n<div class="reply"></div>\n</div>\n'
        f'<div id="answer-text" data-question-id="{number}" style="display:none"></div>\n'
        f'<ul class="content-ans">\n{"".join(_answer(answer, request) for answer in answers)}</ul>\n{pages}\n'
    )
    return html_page(_document(f"{text(post.title)} - 心理问答", left, _similar(post)))


def _asker(post: Post) -> str:
    who = person(post.author)
    if who is None:
        return f'<a target="_blank" class="common-a" href="javascript:void(0);"><img src="{_INCOGNITO}"></a>'
    return (
        f'<a target="_blank" class="common-a" href="{_SITE}/user/{who.uid}"><img src="{_AVATAR}">'
        f'<span class="user-name">{text(who.name)}</span></a>'
    )


def _answer(answer: Answer, request: PageRequest) -> str:
    number, who = aid(answer), person(answer.author, answer.author_role)
    href, name, uid, badge = "javascript:void(0);", "匿名", 0, ""
    if who is not None:
        href = f"{_SITE}/{'expert' if who.professional else 'user'}/{who.uid}"
        name, uid = who.name, who.uid
        badge = f'<span class="honor-icon honor-icon-{1 + figure(4, "badge", who.uid)}"></span>'
    recommended = '<div class="recommend-icon"><i class="yxlicon icon-tuijian"></i></div>' if answer.recommended else ""
    paragraphs = "".join(f"<p>{text(line)}</p>" for line in answer.text.split("\n"))
    comments = figure(5, "comments", number)
    return (
        f'<li>\n<p class="user"><a target="_blank" class="common-a" href="{href}"><img src="{_AVATAR}"></a>'
        f'<span class="username">{text(name)}</span>{badge}'
        f'<span class="help">累计帮助{figure(3000, "help", uid)}人</span></p>\n{recommended}'
        f'<div class="text">{paragraphs}</div>\n<div class="label">'
        f'<span class="follow" data-user-id="{uid}"><a>关注</a></span>\n'
        f'<span data-objectname="qa.reward" data-objectid="{number}"> {figure(3, "reward", number)} </span>\n'
        f'<span class="answer_zan" data-answer-id="{number}"><a>有用 <font>{answer.likes}</font></a></span>\n'
        f'<span class="comment_item" data-answer-id="{number}"><a>评论 <font class="comment_num">{comments}</font></a>'
        f'</span>\n<p class="created_time">{xinli001_time(answer.posted_at, request.now)}</p>\n'
        f'<p class="report_reply" data-answer-id="{number}">举报</p>\n'
        f'<a target="_blank" class="jumpA" href="https://m.xinli001.com/qa/answer-{number}">详情</a></div>\n'
        '<div class="discuss"><div class="comment-list"></div></div>\n</li>\n'
    )


def _similar(post: Post) -> str:
    """Similar questions beside the post: a trap for selectors that look at the whole page."""
    other = FIRST_QID + max(1, post.number - 1)
    return (
        f'<div class="right"><div class="recommend-content"><ul class="ques"><a href="/qa/{other}"><li>虚构的相似问题'
        '<strong>精华</strong><p class="ans-amount"><span>回答 9</span><span>有用 27</span></p></li></a>'
        "</ul></div></div>"
    )


def _document(title: str, left: str, right: str = "") -> str:
    return (
        f'<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n</head>\n<body>\n{NOTE}\n'
        f'<div class="main" id="main">\n<div class="left" id="left">\n{left}</div>\n{right}</div>\n</body>\n</html>\n'
    )
