"""壹心理 (xinli001.com), questions and answers: the layouts of 2020 and 2023, which differ in where the title stands.

=======  ==========================  ===========================
layout   title in a list             title of a question
=======  ==========================  ===========================
2020     ``p.title > a > span``      ``p.title > span``
2023     ``p.title > span > a``      ``div.title > h1``
=======  ==========================  ===========================

Tags are ``ul.detail-tag > a > li`` in 2020, and ``div.content > ul > li``, with or without that class, in 2023.

The rest is the same in both (spec/crawling.md §1.2). Ten answers a page; the next one is linked by ``»``, and where a
page has no pager at all, pages are counted, as the public crawlers of the site do.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlsplit

from parsel import Selector

from crawlers import html
from crawlers.html import Node
from crawlers.markup import UNREAD, Anchors
from crawlers.pages import guard
from crawlers.records import Answer, Listed, ListPage, PageError, PostPage, Question, UnknownLayout
from schemas.taxonomy import TAXONOMY

JSON = False
ORDERED = True  # sorted by id, which is the order of posting
LAYOUT_2020 = "xinli001_2020"
LAYOUT_2023 = "xinli001_2023"

# What the site's own "newest" tab asks for, without its note of where the reader came from.
LATEST = "/qa?page=1&type=question&object_name=last&title=&level2_tag=0&sort=id"


def post_path(source_id: int) -> str:
    """The address of a question, which follows from its id alone."""
    return f"/qa/{source_id}"


# Where a reader came from, and the page of the answers: none of it names the post.
_NOT_THE_POST = frozenset({"from", "source", "page"})
_A_PAGE = 10  # answers, and questions of a list
_POST = re.compile(r"/qa/([0-9]{1,18})/?")
_PERSON = re.compile(r"/(user|expert)/([0-9]{1,18})(?:[/?#]|$)")
_ANSWER = re.compile(r"/qa/answer-([0-9]{1,18})(?:[/?#]|$)")
_KNOWN_TAGS = frozenset((*TAXONOMY, *(name for names in TAXONOMY.values() for name in names)))
# `回答 2 · 有用 0   2025-03-14`: the number of answers, and the time after the number of 有用.
_LABEL = re.compile(r"回答\s*([0-9]{1,9})\s*·\s*有用\s*[0-9]{1,9}(?:\s+(.{1,40}))?")

# What no question holds; where it does, a tag between them is missing.
_PARTS = (
    "#left, #answer-text, .label, .content-ans, .comment-reply, .read-capacity, .pagination, .honor-icon, "
    ".answer_zan, .comment_item, .created_time, .user, .username, .title, p.text, div.text, h1"
)
# And no answer, which may well have headings, and markup that was copied from elsewhere on the page.
_PARTS_OF_ANSWERS = (
    "#left, #answer-text, .content-ans, .comment-reply, .read-capacity, .pagination, .honor-icon, .recommend-icon, "
    f".follow, .answer_zan, .comment_item, .created_time, .jumpA, .user, .username, {UNREAD}"
)
ANSWERS = Anchors(
    begins=re.compile(r"""<li\b[^<>]*>\s*<p\b[^<>]*\bclass=["']user["']"""),
    text=re.compile(r"""<div\b[^<>]*\bclass=["']text["'][^<>]*>"""),
    follows=re.compile(r"""<div\b[^<>]*\bclass=["']label["']"""),
    between=re.compile(r"(.*?)(</div>\s*)?", re.DOTALL),
    closing="</div>",
)

SELECTORS: Mapping[str, str] = {
    "list": "#left ul.content",
    "list_post": "#left ul.content > li",
    "list_link_2020": "p.title > a[href]",
    "list_link_2023": "p.title > span > a[href]",
    "list_label": "p.label > span",
    "pager": "ul.pagination",
    "next": "ul.pagination a[rel~='next']",
    "question": "#left > div.content",
    "question_id": "#answer-text[data-question-id]",
    "title_2020": "p.title > span:not(.user-name)",
    "title_2023": "div.title > h1",
    "asker": "p.title > a[href], div.title > a[href]",
    "n_answers": "p.title > strong, div.title > strong",
    "posted": "p.read-capacity > span:first-child",
    "body": "p.text",
    "tags": "ul.detail-tag li",
    "tags_2023": "div.content > ul:last-of-type li",
    "answers": "ul.content-ans",
    "answer": "#left ul.content-ans > li",
    "answer_text": "div.text",
    "answer_id": ".answer_zan[data-answer-id]",
    "answer_link": "a.jumpA[href]",
    "answerer": "p.user > a[href]",
    "likes": ".answer_zan font",
    "recommended": ".recommend-icon",
    "answered": "p.created_time",
    "discussion": ".discuss",
}


def list_page(body: Selector, url: str, fetched_at: datetime, css: Mapping[str, str] = SELECTORS) -> ListPage:
    """A list of questions, newest first."""
    top = guard.root(body)
    if not html.find(top, css["list"]):
        raise UnknownLayout("no list of questions")
    rows = [row for row in html.find(top, css["list_post"]) if html.find(row, "p.title")]
    ways = {"list_link_2020": LAYOUT_2020, "list_link_2023": LAYOUT_2023}
    used = [way for way in ways if any(html.find(row, css[way]) for row in rows)]
    if rows and not used:
        raise UnknownLayout("questions in a list without links")
    if len(used) > 1:
        raise PageError("a list in two layouts at once")
    way = used[0] if used else "list_link_2023"
    base = html.base(top, url)
    listed = [_listed(row, css, way, url, base, fetched_at) for row in rows]
    return guard.list_page(listed, *_next(top, css, url, more=len(rows) >= _A_PAGE))


def _listed(row: Node, css: Mapping[str, str], way: str, url: str, base: str, fetched_at: datetime) -> Listed | None:
    links = [(each, html.link(each.get("href"), base)) for each in html.find(row, css[way])]
    # In 2020 the picture, the title and 去回答 lead to the same question, each with another note of where from.
    targets = {
        (match[1], guard.plain_url(link, _NOT_THE_POST))
        for _, link in links
        if link and (match := _post(link)) and guard.same_host(link, url)
    }
    if not targets:
        return None
    if len(targets) > 1 or not html.followed(links[0][0]):
        raise PageError("a question in a list without a link")
    ((source_id, target),) = targets
    match = _LABEL.fullmatch(guard.words(row, css["list_label"], "the line under a question in a list") or "")
    if match is None:
        return Listed(source_id, target)
    return Listed(source_id, target, fingerprint=match[1], posted=guard.moment_or_none(match[2], fetched_at))


def post_page(body: Selector, url: str, fetched_at: datetime, css: Mapping[str, str] = SELECTORS) -> PostPage:
    """A question with the answers of one page; the question comes with the first page alone."""
    top = guard.root(body)
    box = html.find(top, css["question"])
    titles = {
        layout: matches
        for layout, name in ((LAYOUT_2020, "title_2020"), (LAYOUT_2023, "title_2023"))
        if (matches := [title for each in box for title in html.find(each, css[name])])
    }
    if not titles:
        raise UnknownLayout("no title of a question")
    if len(titles) > 1 or len(box) > 1:
        raise PageError("a question that stands twice")
    (layout,) = titles
    stated = re.fullmatch(
        r"([0-9]{1,9})\s*个回答", html.words(guard.one(box[0], css["n_answers"], "the number of answers"))
    )
    if stated is None:
        raise PageError("the number of answers can not be read")
    # Every page repeats the question. Read it on each, so that a page that lost its beginning is an error there too.
    question = _question(top, box[0], titles[layout], css, url, fetched_at)
    rows, n_answers = html.find(top, css["answer"]), int(stated[1])
    if n_answers and not html.find(top, css["answers"]):
        raise PageError("a question with answers, and no list of them")
    if len(html.find(top, css["answer_id"])) != sum(len(html.find(row, css["answer_id"])) for row in rows):
        raise PageError("an answer outside of the list of answers")
    answers, n_unread = guard.answers(rows, lambda row: _answer(row, css, fetched_at, layout))
    number = _place(url)[1]
    more = len(rows) >= _A_PAGE and (number - 1) * _A_PAGE + len(rows) < n_answers
    next_url, counted = _next(top, css, url, more=more)
    first = question if number == 1 else None
    return guard.page(first, answers, [next_url], layout, n_answers, counted=counted, n_unread=n_unread)


def _question(
    top: Node, box: Node, titles: list[Node], css: Mapping[str, str], url: str, fetched_at: datetime
) -> Question:
    if len(titles) != 1:
        raise PageError("a question with two titles")
    source_id = guard.one(top, css["question_id"], "the question's id").get("data-question-id", "")
    address = _post(url)
    if address is None or address[1] != source_id:
        raise PageError("the question's id is not that of its address")
    body = guard.one(box, css["body"], "the question's text")
    after = body.getnext()
    own_list = after is not None and after.tag in ("ul", "ol") and html.find(box, "div.content > ul")[-1:] != [after]
    if (body.tail or "").strip() or own_list or (after is not None and after.tag == "p" and not after.get("class")):
        # A paragraph, or a list, within a paragraph ends it: the rest would be lost without a word.
        raise PageError("the question's text runs on behind its end")
    names = _tags(box, css["tags"]) or _tags(box, css["tags_2023"])
    if not html.find(box, css["tags"]) and not _KNOWN_TAGS.intersection(names):
        names = []  # public crawlers saw no class on the list in 2023: another list may be the seeker's own
    topic = next((name for name in names if name in TAXONOMY), None)
    return Question(
        source_id=source_id,
        url=guard.plain_url(url, _NOT_THE_POST),
        title=guard.title_of(guard.text(titles[0], f"strong, span, {_PARTS}", "the title")),
        description=guard.text(body, _PARTS, "the question's text", keep_lines=True),
        topic=topic,
        subtopics=tuple(dict.fromkeys(name for name in names if name and name != topic)),
        author=_person(box, css["asker"], "the asker")[0],
        posted=guard.moment(guard.words(box, css["posted"], "the time of the question"), fetched_at, "the question"),
    )


def _tags(box: Node, css: str) -> list[str]:
    tags = [guard.text(tag, f"li, {_PARTS}", "a tag") for tag in html.find(box, css)]
    return [" ".join(tag.split()) for tag in tags]


def _answer(row: Node, css: Mapping[str, str], fetched_at: datetime, layout: str) -> Answer:
    # Always within the row: `//div[@class="text"]` would give every answer the text of the whole page.
    aside = {text for each in html.find(row, css["discussion"]) for text in html.find(each, css["answer_text"])}
    texts = [each for each in html.find(row, css["answer_text"]) if each not in aside]
    # One within another was copied from a page.
    texts = [each for each in texts if not any(outer in texts for outer in each.iterancestors())]
    if len(texts) != 1 or (texts[0].tail or "").strip():
        raise PageError(f"an answer with {len(texts)} texts, or with words behind its text")
    marks = html.find(row, css["answer_id"])
    ids = {mark.get("data-answer-id") for mark in marks}
    ids |= {match[1] for each in html.find(row, css["answer_link"]) if (match := _ANSWER.search(each.get("href")))}
    source_id = (ids.pop() or "") if len(ids) == 1 else ""
    if not guard.ID.fullmatch(source_id) or not html.followed(marks[0] if marks else row):
        raise PageError("an answer without an id, or with two")
    author, role = _person(row, css["answerer"], "the writer of an answer")
    recommended = bool(html.find(row, css["recommended"]))
    return Answer(
        source_id=source_id,
        author=author,
        author_role=role,
        text=guard.text(texts[0], _PARTS_OF_ANSWERS, "an answer's text"),
        posted=guard.moment_or_none(guard.words(row, css["answered"], "the time of an answer"), fetched_at),
        likes=html.number(guard.words(row, css["likes"], "the number of 有用 of an answer")),
        # No crawler of the layout of 2023 saw the icon: there its absence says nothing.
        recommended=recommended if layout == LAYOUT_2020 else recommended or None,
    )


def _next(top: Node, css: Mapping[str, str], url: str, *, more: bool) -> tuple[str | None, bool]:
    """The next page, and whether it was counted: where a full page has no pager the next number is asked for."""
    linked = guard.next_link(top, css["next"], url, _place)
    has_pager = any(
        re.search("[0-9]", html.words(each)) for each in html.find(top, css["pager"])
    )  # a script may fill it
    if linked is not None or not more or has_pager:
        return linked, False
    return guard.with_parameter(url, "page", _place(url)[1] + 1), True


def _place(url: str) -> tuple[str, int]:
    """What an address shows, whatever it says of where the reader came from; and which page of it."""
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path.rstrip('/')}", max(guard.parameter(url, "page") or 1, 1)


def _post(url: str) -> re.Match[str] | None:
    return _POST.fullmatch(urlsplit(url).path)


def _person(node: Node, css: str, what: str) -> tuple[str | None, str]:
    """The id of a user and their role; an anonymous one has a link that leads nowhere. A link to /expert/ is a
    counsellor's as the site has it. No licence follows from it.
    """
    person = guard.one_person(node, css, _PERSON, what)
    if not person:
        return None, "unknown"
    kind, number = person
    # The two are numbered apart.
    return (number, "member") if kind == "user" else (f"expert/{number}", "professional")
