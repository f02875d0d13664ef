"""Discuz! X3.x, the software of most Chinese boards: the default template; a skin replaces selectors by name.

A thread's first message is the question, every other message an answer. Comments under a message, quotes in it and
the notes that Discuz adds (last edited by …) are not its writer's words. What a board hides from guests stands in
`div.locked` and is left out (spec/crawling.md §2.1).
"""

import re
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlsplit

from parsel import Selector

from crawlers import dates, html
from crawlers.html import Node
from crawlers.markup import UNREAD, Anchors
from crawlers.pages import guard
from crawlers.records import Answer, Listed, ListPage, Moment, PageError, PostPage, Question, UnknownLayout
from crawlers.sites import Board, Site

LAYOUT = "discuz_x3"
JSON = False
ORDERED = False  # the last message first, stuck threads on top
LATEST = None

_REWRITTEN = re.compile(r"/thread-([0-9]{1,18})-([0-9]{1,9})-[0-9]{1,9}\.html")
_PAGE = re.compile(r"/(forum|thread)-([0-9]{1,18})-([0-9]{1,9})(?:-[0-9]{1,9})?\.html")
_THREADS = re.compile(r"(?:主题|主題)\s*[:\uff1a]\s*([0-9]{1,9})")  # in the head of a board
_NOT_THE_THREAD = frozenset({"extra", "page", "sid", "fromuid", "ordertype", "mobile", "highlight", "from"})
_PERSON = re.compile(r"(?:[?&]uid=|(?:^|/)space-uid-)([0-9]{1,18})(?:[&#.]|$)")
_MESSAGE = re.compile(r"post_([0-9]{1,18})")
_ROW = re.compile(r"(normal|stick)thread_[0-9]{1,18}")
# 楼主 is the first floor; a board may name the next three, and counts from there: 5#.
_FIRST_FLOOR = frozenset({"楼主", "樓主", "1", "1#"})
_OTHER_FLOOR = re.compile(r"沙发|沙發|板凳|地板|(?:[2-9]|[1-9][0-9]{1,8})#?")
# Stands before every time of a message; in another encoding it would not.
_POSTED = re.compile(r"(?:发表|發表)(?:于|於)")

# What no message holds; where it does, a tag between them is missing.
_PARTS = (
    "#postlist, #threadlist, #postlistreply, .plhin, .plc, .pls, .authi, .cm, .po, .pgs, .t_f, .modact, "
    f"[id^='post_'], [id^='postmessage_'], [id^='comment_'], [id^='authorposton'], [id^='postnum'], {UNREAD}"
)
ANSWERS = Anchors(
    begins=re.compile(r"""<div\b[^<>]*\bid=["']post_[0-9]{1,18}["']"""),
    text=re.compile(r"""<td\b[^<>]*\bid=["']postmessage_[0-9]{1,18}["'][^<>]*>"""),
    follows=re.compile(r"""<div\b[^<>]*\bid=["']comment_[0-9]{1,18}["']"""),
    between=re.compile(r"(.*)(</td>\s*</tr>\s*(?:</tbody>\s*)?</table>.*)", re.DOTALL),
    closing="</td></tr></table></div>",
)
# In a message, but not its writer's words.
_NOT_WRITTEN = (
    "div.locked, div.quote, i.pstatus, .attach_nopermission, .aimg_tip, .tip, .pattl, .attnm, ignore_js_op, .sign, .ad"
)

SELECTORS: Mapping[str, str] = {
    "list": "#threadlist",
    "list_post": "#threadlist tbody[id]",
    "list_link": "th a.xst[href]",
    "list_by": "td.by",
    "list_time": "em",
    "list_replies": "td.num a",
    "list_total": "h1 span.xs1",
    "next": "div.pg a.nxt",
    "n_pages": "div.pg label span[title]",
    "message_page": "#messagetext",
    "post": "#postlist div[id^='post_']",
    "title": "#thread_subject",
    "counts": "#postlist div.hm span.xi1",
    "board": "#pt a[href*='forumdisplay'], #pt a[href*='forum-']",
    "kind": "h1.ts a[href*='typeid=']",
    "text": "[id^='postmessage_']",
    "locked": "div.locked",
    "author": "div.authi a.xw1[href]",
    "posted": "em[id^='authorposton']",
    "floor": "a[id^='postnum']",
    "likes": "[id^='review_support_']",
}


def board_path(site: Site, board: Board) -> str:
    """The list of a board, in the form of address that the site uses."""
    return f"/forum-{board.id}-1.html" if site.rewritten_urls else f"/forum.php?mod=forumdisplay&fid={board.id}&page=1"


def list_page(body: Selector, url: str, fetched_at: datetime, css: Mapping[str, str] = SELECTORS) -> ListPage:
    """The threads of a board, those stuck on top first."""
    top = guard.root(body)
    if not html.find(top, css["list"]):
        raise _nothing(top, css, "no list of threads")
    base = html.base(top, url)
    rows = [(row, kind[1]) for row in html.find(top, css["list_post"]) if (kind := _ROW.fullmatch(row.get("id")))]
    listed = [_listed(row, kind == "stick", css, url, base, fetched_at) for row, kind in rows]
    stated = next((_THREADS.search(html.words(each)) for each in html.find(top, css["list_total"])), None)
    return guard.list_page(listed, _next(top, css, url), n_posts=int(stated[1]) if stated else None)


def _listed(
    row: Node, pinned: bool, css: Mapping[str, str], url: str, base: str, fetched_at: datetime
) -> Listed | None:
    title = guard.one(row, css["list_link"], "the link of a thread in a list")
    if not html.followed(title):
        raise PageError("the page ends within a thread of a list")
    link = html.link(title.get("href"), base)
    thread = _thread(link) if link and guard.same_host(link, url) else None
    if thread is None:
        return None
    # Two columns say who and when: of the thread, and of its last message.
    columns = html.find(row, css["list_by"])
    times = [next(iter(html.find(column, css["list_time"])), None) for column in columns if len(columns) == 2]
    posted, active = (_when(time, fetched_at) for time in times or (None, None))
    replies = _number(row, css["list_replies"])
    fingerprint = None if replies is None else str(replies)
    if fingerprint and active is not None and dates.names_a_date(active):
        # A reply that was removed and one that came since leave the number as it was.
        fingerprint += f" {active.at:%Y-%m-%dT%H:%M}"
    return Listed(thread[0], thread[1], fingerprint, posted, active, pinned)


def post_page(body: Selector, url: str, fetched_at: datetime, css: Mapping[str, str] = SELECTORS) -> PostPage:
    """A page of a thread; its first message is the question."""
    top = guard.root(body)
    if not html.find(top, css["title"]) or not html.find(top, css["post"]):
        raise _nothing(top, css, "no thread")
    thread = _thread(url)
    if thread is None:
        raise PageError("a thread whose address has no id")
    title = guard.one(top, css["title"], "the title")
    subject = guard.title_of(guard.text(title, f"div, table, p, h1, {_PARTS}", "the title"))
    posts = _posts(top, css)
    first = _place(url)[1] == 1
    question = None
    if first:
        question = _question(top, posts[0], _message(posts[0], css, fetched_at), subject, thread, css)
    answers, n_unread = guard.answers(posts[first:], lambda post: _message(post, css, fetched_at))
    counts = html.find(top, css["counts"])
    n_answers = html.number(html.words(counts[1])) if len(counts) == 2 else None
    return guard.page(question, answers, [_next(top, css, url)], LAYOUT, n_answers, n_unread=n_unread)


def _posts(top: Node, css: Mapping[str, str]) -> list[Node]:
    posts = [post for post in html.find(top, css["post"]) if _MESSAGE.fullmatch(post.get("id", ""))]
    if not posts:
        raise PageError("a thread without messages")
    guard.distinct([post.get("id") for post in posts], "a message")
    texts = {text for post in posts for text in html.find(post, css["text"])}
    if texts != set(html.find(top, css["text"])):
        raise PageError("a message outside of the thread")
    return posts


def _message(post: Node, css: Mapping[str, str], fetched_at: datetime) -> Answer:
    """A message of a thread; without text where it is an image alone or hidden from guests."""
    around, inside = post.iterancestors(), html.find(post, "[id^='post_']")
    if sum(_MESSAGE.fullmatch(each.get("id", "")) is not None for each in (*around, *inside)) > 1:
        raise PageError("a message within a message")
    source_id = post.get("id").removeprefix("post_")
    text = guard.at_most_one(post, css["text"], "the text of a message")
    if text is not None and text.tag == "td" and (text.getnext() is not None or text.getparent().getnext() is not None):
        raise PageError("a message whose text goes on behind its end")
    if text is None and not html.find(post, css["locked"]):
        raise PageError("a message without text")
    stamp = guard.at_most_one(post, css["posted"], "the time of a message")
    ids = {each.get("id", "") for each in (text, stamp) if each is not None}
    if not ids <= {f"postmessage_{source_id}", f"authorposton{source_id}"}:
        raise PageError("a message with parts of another")
    if stamp is not None and not _POSTED.match(html.words(stamp)):
        raise UnknownLayout("a message without the words before its time: another language, or a wrong encoding")
    author = next(iter(guard.one_person(post, css["author"], _PERSON, "the writer of a message")), None)
    return Answer(
        source_id=source_id,
        author=author,
        author_role="member" if author else "unknown",
        text="" if text is None else guard.text(text, _PARTS, "a message", drop=_NOT_WRITTEN),
        posted=_when(stamp, fetched_at),
        likes=_number(post, css["likes"]),
    )


def _question(
    top: Node, post: Node, message: Answer, title: str, thread: tuple[str, str], css: Mapping[str, str]
) -> Question:
    floor = next((html.words(each) for each in html.find(post, css["floor"])), "")
    if floor not in _FIRST_FLOOR and _OTHER_FLOOR.fullmatch(floor):
        raise PageError("the first message of the thread is missing")
    if not html.find(post, css["text"]) or (not message.text and html.find(post, css["locked"])):
        raise PageError("a question that is hidden from guests")
    if message.posted is None:
        raise PageError("the question: no time that can be read")
    board = html.find(top, css["board"])
    kinds = [html.words(each).strip("[]【】 ") for each in html.find(top, css["kind"])]
    return Question(
        source_id=thread[0],
        url=thread[1],
        title=title,
        description=message.text,
        topic=(html.words(board[-1]) or None) if board else None,
        subtopics=tuple(dict.fromkeys(kind for kind in kinds if kind)),
        author=message.author,
        posted=message.posted,
    )


def _nothing(top: Node, css: Mapping[str, str], what: str) -> PageError:
    if html.find(top, css["message_page"]):
        return PageError("the board answers with a message: removed, closed, or for members alone")
    return UnknownLayout(what)


def _thread(url: str) -> tuple[str, str] | None:
    """The id of a thread and the address of its first page."""
    if rewritten := _REWRITTEN.search(urlsplit(url).path):
        return rewritten[1], guard.plain_url(
            url.replace(rewritten[0], f"/thread-{rewritten[1]}-1-1.html"), _NOT_THE_THREAD
        )
    tid = guard.parameter(url, "tid")
    if tid is None or "mod=viewthread" not in urlsplit(url).query:
        return None
    return str(tid), guard.plain_url(url, _NOT_THE_THREAD)


def _next(top: Node, css: Mapping[str, str], url: str) -> str | None:
    return guard.next_link(top, css["next"], url, _place, _number(top, css["n_pages"]))


def _place(url: str) -> tuple[str, int]:
    """What an address shows, a thread or a board, in either form of address; and which page of it."""
    rewritten = _PAGE.search(urlsplit(url).path)
    if rewritten:
        return f"{rewritten[1]} {rewritten[2]}", max(int(rewritten[3]), 1)
    tid, fid = guard.parameter(url, "tid"), guard.parameter(url, "fid")
    return f"forum {fid}" if tid is None else f"thread {tid}", max(guard.parameter(url, "page") or 1, 1)


def _number(node: Node, css: str) -> int | None:
    return next((html.number(html.words(each)) for each in html.find(node, css)), None)


def _when(node: Node | None, fetched_at: datetime) -> Moment | None:
    """The time in `node`. Within a week Discuz shows words (3 小时前), and the time itself in the span's title."""
    if node is None:
        return None
    exact = next((each.get("title") for each in html.find(node, "span[title]")), None)
    return guard.moment_or_none(exact or html.words(node), fetched_at)
