"""A group of Douban: twenty-five topics and a hundred comments a page. Lists follow the last comment.

`/group/{name}/discussion?start=N` (any name is this one group), `/group/topic/{tid}/?start=N`. Long titles are cut in
lists (the whole one is in `title`), comments liked most stand twice (in a list of their own, too), and provinces,
invented, stand behind the times.
"""

import re

from samples.replica.page import NOTE, Page, PageRequest, figure, html_page, lines, local, person, text, whole_number
from samples.replica.posts import Answer, Post
from samples.replica.world import World

TOPICS_A_PAGE = 25
COMMENTS_A_PAGE = 100
FIRST_TOPIC = 280_000_000
FIRST_COMMENT = 4_100_000_000
ROBOTS = ("/subject_search", "/search", "/people/")

_LIST = re.compile(r"/group/([\w-]{1,60})/discussion")
_TOPIC = re.compile(r"/group/topic/([0-9]{1,12})/?")
_TITLE_CHARACTERS = 20


def topic_id(post: Post) -> int:
    """The site's id of a topic."""
    return FIRST_TOPIC + post.number


def comment_id(answer: Answer) -> int:
    """The site's id of a comment."""
    return FIRST_COMMENT + answer.number


def respond(world: World, request: PageRequest) -> Page | None:
    """The page at this address, None where there is none."""
    if match := _LIST.fullmatch(request.path):
        return _list(world, request, match[1])
    match = _TOPIC.fullmatch(request.path)
    post = world.post(int(match[1]) - FIRST_TOPIC) if match else None
    return None if post is None else _topic(post, request)


def _list(world: World, request: PageRequest, name: str) -> Page:
    start = whole_number(request.query.get("start"), 0)
    posts = sorted(world.most_active(), key=lambda post: not post.notice)
    rows = "".join(_row(post, request) for post in posts[start : start + TOPICS_A_PAGE])
    head = (
        '<tr class="th"><td>讨论</td><td>作者</td><td nowrap="nowrap">回应</td><td align="right">最后回应</td></tr>\n'
    )
    pager = _pager(f"{request.base}/group/{name}/discussion", start, TOPICS_A_PAGE, len(posts))
    content = f'<h1>虚构小组</h1>\n<div class="article">\n<table class="olt">\n{head}{rows}</table>\n{pager}</div>\n'
    return _document("虚构小组", content)


def _row(post: Post, request: PageRequest) -> str:
    short = post.title if len(post.title) <= _TITLE_CHARACTERS else post.title[:_TITLE_CHARACTERS] + "..."
    stuck = '<span class="pl">[置顶]</span> ' if post.notice else ""
    elite = '<span class="elite_topic_lable">精</span>' if figure(30, "elite", post.number) == 0 else ""
    active, same_year = local(post.active_at), local(post.active_at).year == local(request.now).year
    uid, name = _member(post)
    return (
        f'<tr class="">\n<td class="title">{stuck}<a href="{request.base}/group/topic/{topic_id(post)}/" '
        f'title="{text(post.title)}" class="">{text(short)}</a>{elite}</td>\n'
        f'<td nowrap="nowrap"><a href="{request.base}/people/{uid}/" class="">{text(name)}</a></td>\n'
        f'<td nowrap="nowrap" class="r-count ">{len(post.answers) or ""}</td>\n'
        f'<td nowrap="nowrap" class="time">{active.strftime("%m-%d %H:%M" if same_year else "%Y-%m-%d")}</td>\n</tr>\n'
    )


def _member(message: Post | Answer) -> tuple[int, str]:
    """The uid and name of who wrote: nobody is anonymous here, so those get an account that was closed."""
    key = topic_id(message) if isinstance(message, Post) else comment_id(message)
    who = person(message.author or f"closed-{key}")
    assert who is not None
    return who.uid, who.name if message.author else "[已注销]"


def _topic(post: Post, request: PageRequest) -> Page:
    start = whole_number(request.query.get("start"), 0)
    uid, name = _member(post)
    url = f"{request.base}/group/topic/{topic_id(post)}/"
    comments = post.answers[start : start + COMMENTS_A_PAGE]
    best = sorted((each for each in post.answers if each.likes >= 5), key=lambda each: -each.likes)[:3]
    popular = ""
    if start == 0 and len(post.answers) >= 5 and best:
        items = "".join(_comment(each, request, post) for each in best)
        popular = f'<h3>最赞回应</h3>\n<ul class="topic-reply popular-bd" id="popular-comments">\n{items}</ul>\n'
    paragraphs = "".join(f'<p data-align="">{text(line)}</p>\n' for line in post.description.split("\n"))
    content = (
        f'<h1>\n{text(post.title)}\n</h1>\n<div class="article">\n'
        f'<div id="topic-content" class="topic-content clearfix">\n'
        f'<div class="user-face"><a href="{request.base}/people/{uid}/">'
        '<img class="pil" src="/invented.jpg" /></a></div>\n'
        f'<div class="topic-doc">\n<h3><span class="from">来自: <a href="{request.base}/people/{uid}/">{text(name)}</a>'
        f'</span>\n<span class="create-time color-green">{local(post.posted_at):%Y-%m-%d %H:%M:%S}</span>\n'
        f'<span class="create-ip">虚构省</span></h3>\n<div id="link-report">\n'
        f'<div class="rich-content topic-richtext">\n{paragraphs}</div>\n</div>\n</div>\n</div>\n'
        f'<div class="sns-bar"><a class="lnk-like">赞 <span>{figure(30, "like", post.number)}</span></a>'
        f"</div>\n{popular}"
        f'<ul class="topic-reply" id="comments">\n{"".join(_comment(each, request, post) for each in comments)}</ul>\n'
        f"{_pager(url, start, COMMENTS_A_PAGE, len(post.answers))}</div>\n"
    )
    return _document(text(post.title), content)


def _comment(answer: Answer, request: PageRequest, post: Post) -> str:
    number, (uid, name) = comment_id(answer), _member(answer)
    quote = ""
    if figure(7, "quote", number) == 0:
        quoted = text(" ".join(post.description.split())[:40])
        quote = (
            f'<div class="reply-quote"><div class="reply-quote-content"><span class="all">{quoted}</span></div></div>\n'
        )
    votes = f"赞 ({answer.likes})" if answer.likes else "赞"
    return (
        f'<li class="clearfix comment-item reply-item" id="{number}" data-cid="{number}">\n'
        f'<div class="user-face"><a href="{request.base}/people/{uid}/">'
        '<img class="pil" src="/invented.jpg" /></a></div>\n'
        '<div class="reply-doc content">\n<div class="bg-img-green"><h4>'
        f'<a href="{request.base}/people/{uid}/">{text(name)}'
        f'</a> <span class="pubtime">{local(answer.posted_at):%Y-%m-%d %H:%M:%S} 虚构省</span></h4></div>\n{quote}'
        f'<p class=" reply-content">{lines(answer.text)}</p>\n'
        f'<div class="operation-div"><a href="javascript:void(0);" class="comment-vote lnk-fav">{votes}</a>\n'
        f'<a href="#" class="lnk-reply">回应</a></div>\n</div>\n</li>\n'
    )


def _pager(url: str, start: int, size: int, total: int) -> str:
    if total <= size:
        return ""
    page, pages = start // size + 1, -(-total // size)
    before = f'<a href="{url}?start={start - size}">&lt;前页</a>' if start >= size else "&lt;前页"
    after = f'<a href="{url}?start={start + size}">后页&gt;</a>' if start + size < total else "后页&gt;"
    numbers = "".join(
        f'<span class="thispage" data-total-page="{pages}">{k}</span>' if k == page
        else f'<a href="{url}?start={(k - 1) * size}">{k}</a>'
        for k in range(max(1, page - 3), min(pages, page + 3) + 1)
    )  # fmt: skip
    return (
        f'<div class="paginator"><span class="prev">{before}</span>{numbers}<span class="next">{after}</span></div>\n'
    )


def _document(title: str, content: str) -> Page:
    return html_page(
        f'<!DOCTYPE html>\n<html lang="zh-CN">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        "</head>\n<body>\n"
        f'{NOTE}\n<div id="wrapper">\n<div id="content">\n{content}</div>\n</div>\n</body>\n</html>\n'
    )
