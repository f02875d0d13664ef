"""Groups of Douban (豆瓣小组): a topic is the question, the comments under it are the answers (spec/crawling.md §2).

Since 2022 the site shows the writer's province behind the time: it is cut off and never leaves this module.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlsplit, urlunsplit

from parsel import Selector

from crawlers import html
from crawlers.html import Node
from crawlers.pages import guard
from crawlers.records import Answer, Listed, ListPage, PageError, PostPage, Question, UnknownLayout
from crawlers.sites import Board, Site

LAYOUT = "douban_group"
JSON = False
ORDERED = False  # the last comment first
LATEST = None

_TOPIC = re.compile(r"(.*/group/topic/)([0-9]{1,18})/?")
_PERSON = re.compile(r"/people/([^/?#]{1,64})(?:[/?#]|$)")
_TIME = re.compile(r"(?:[0-9]{4}-)?[0-9]{1,2}-[0-9]{1,2}(?: [0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?)?")

# What no text holds; where it does, a tag between them is missing.
_PARTS = (
    "#topic-content, #comments, [data-cid], .topic-richtext, .reply-content, .reply-quote, .reply-quote-content, "
    ".pubtime, .create-time, .comment-vote, .lnk-reply, .operation-div, .user-face, .paginator, h1"
)

SELECTORS: Mapping[str, str] = {
    "list": "table.olt",
    "list_post": "table.olt tr:not(.th)",
    "list_link": "td.title a[href*='/group/topic/']",
    "list_pinned": "td.title span",
    "list_replies": "td.r-count",
    "list_active": "td.time",
    "next": "span.next a",
    "topic": "#topic-content",
    "title": "h1",
    "text": "#topic-content .topic-richtext",
    "posted": "#topic-content .create-time",
    "author": "#topic-content .user-face a[href*='/people/']",
    "answers": "ul#comments",
    "answer": "ul#comments > li",
    "answer_text": ".reply-content",
    "answer_posted": ".pubtime",
    "answer_author": ".user-face a[href*='/people/']",
    "likes": ".comment-vote",
}


def board_path(_site: Site, board: Board) -> str:
    """The list of a group."""
    return f"/group/{board.id}/discussion?start=0"


def list_page(body: Selector, url: str, fetched_at: datetime, css: Mapping[str, str] = SELECTORS) -> ListPage:
    """The topics of a group, that with the latest comment first."""
    top = guard.root(body)
    if not html.find(top, css["list"]):
        raise UnknownLayout("no list of topics")
    base = html.base(top, url)
    rows = [row for row in html.find(top, css["list_post"]) if html.find(row, "td.title")]
    listed = [_listed(row, css, url, base, fetched_at) for row in rows]
    if rows and not any(html.find(row, css["list_link"]) for row in rows):
        raise UnknownLayout("topics in a list without links")
    return guard.list_page(listed, guard.next_link(top, css["next"], url, _place))


def _listed(row: Node, css: Mapping[str, str], url: str, base: str, fetched_at: datetime) -> Listed | None:
    title = guard.at_most_one(row, css["list_link"], "the link of a topic in a list")
    link = None if title is None else html.link(title.get("href"), base)
    topic = _topic(link) if link and guard.same_host(link, url) else None
    if topic is None:
        return None
    if not html.followed(title):
        raise PageError("the page ends within a topic of a list")
    active = guard.moment_or_none(_time(row, css["list_active"], "the time of a topic in a list"), fetched_at)
    counted = guard.words(row, css["list_replies"], "the number of comments in a list")
    replies = None if counted is None else html.number(counted) or 0  # an empty cell is none
    fingerprint = None
    if replies is not None or active is not None:
        fingerprint = f"{replies} {active.at:%Y-%m-%dT%H:%M}" if active else str(replies)
    pinned = any("置顶" in html.words(each) for each in html.find(row, css["list_pinned"]))
    return Listed(*topic, fingerprint, None, active, pinned, replies)


def post_page(body: Selector, url: str, fetched_at: datetime, css: Mapping[str, str] = SELECTORS) -> PostPage:
    """A page of a topic; the question comes with the first page alone."""
    top = guard.root(body)
    if not html.find(top, css["topic"]) and not html.find(top, css["answers"]):
        raise UnknownLayout("no topic")
    topic = _topic(url)
    if topic is None:
        raise PageError("a topic whose address has no id")
    first = not guard.parameter(url, "start")
    if not first and not html.find(top, css["answers"]):
        raise PageError("a further page of a topic, and no list of comments")
    rows = html.find(top, css["answer"])
    inside = {text for row in rows for text in html.find(row, css["answer_text"])}
    outside = {text for each in html.find(top, css["answers"]) for text in html.find(each, css["answer_text"])} - inside
    if outside or len(html.find(top, css["answers"])) > 1:
        raise PageError("a comment outside of the list of comments")
    question = _question(top, topic, css, fetched_at) if first else None
    answers, n_unread = guard.answers(rows, lambda row: _answer(row, css, fetched_at))
    next_url = guard.next_link(top, css["next"], url, _place)
    return guard.page(question, answers, [next_url], LAYOUT, n_unread=n_unread)


def _question(top: Node, topic: tuple[str, str], css: Mapping[str, str], fetched_at: datetime) -> Question:
    title = guard.one(top, css["title"], "the title")
    text = guard.one(top, css["text"], "the topic's text")
    foreign = f"div, p, span, a, {_PARTS}"
    return Question(
        source_id=topic[0],
        url=topic[1],
        title=guard.title_of(guard.text(title, foreign, "the title")),
        description=guard.text(text, _PARTS, "the topic's text"),
        topic=None,
        subtopics=(),
        author=next(iter(guard.one_person(top, css["author"], _PERSON, "the topic")), None),
        posted=guard.moment(_time(top, css["posted"], "the time of the topic"), fetched_at, "the topic"),
    )


def _answer(row: Node, css: Mapping[str, str], fetched_at: datetime) -> Answer:
    source_id = row.get("data-cid", "")
    if not guard.ID.fullmatch(source_id):
        raise PageError("a comment without an id")
    text = guard.one(row, css["answer_text"], "the text of a comment")
    likes = guard.words(row, css["likes"], "the votes of a comment")
    author = next(iter(guard.one_person(row, css["answer_author"], _PERSON, "a comment")), None)
    return Answer(
        source_id=source_id,
        author=author,
        author_role="member" if author else "unknown",
        text=guard.text(text, _PARTS, "a comment", keep_lines=True),
        posted=guard.moment_or_none(_time(row, css["answer_posted"], "the time of a comment"), fetched_at),
        likes=None if likes is None else html.number(likes) or 0,  # 赞 without a number: none yet
    )


def _place(url: str) -> tuple[str, int]:
    """What an address shows, and which page of it: 25 topics of a list, 100 comments of a topic."""
    parts = urlsplit(url)
    size = 100 if "/topic/" in parts.path else 25
    return f"{parts.netloc}{parts.path.rstrip('/')}", (guard.parameter(url, "start") or 0) // size


def _topic(url: str) -> tuple[str, str] | None:
    """The id of a topic and the address of its first page."""
    parts = urlsplit(url)
    match = _TOPIC.fullmatch(parts.path)
    if match is None:
        return None
    return match[2], urlunsplit((parts.scheme, parts.netloc, f"{match[1]}{match[2]}/", "", ""))


def _time(node: Node, css: str, what: str) -> str | None:
    """The time that `css` matches, alone: what stands behind it is the writer's province."""
    match = _TIME.match(guard.words(node, css, what) or "")
    return match and match[0]
