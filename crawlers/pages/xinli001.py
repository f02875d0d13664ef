"""壹心理 (xinli001.com), questions and answers: the layouts of 2020 and 2023, which differ in where the title stands.

=======  ==========================  ===========================
layout   title in a list             title of a question
=======  ==========================  ===========================
2020     ``p.title > a > span``      ``p.title > span``
2023     ``p.title > span > a``      ``div.title > h1``
=======  ==========================  ===========================

The rest is the same in both (spec/crawling.md §1.2). Ten answers a page; the next one is linked by ``»``.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlsplit

from parsel import Selector

from crawlers import html
from crawlers.html import Node
from crawlers.pages import guard
from crawlers.records import Answer, Listed, ListPage, PageError, PostPage, Question, UnknownLayout
from schemas.taxonomy import TAXONOMY

JSON = False
ORDERED = True  # sorted by id, which is the order of posting
LAYOUT_2020 = "xinli001_2020"
LAYOUT_2023 = "xinli001_2023"

# What the site's own "newest" tab asks for, without its note of where the reader came from.
LATEST = "/qa?page=1&type=question&object_name=last&title=&level2_tag=0&sort=id"
# Where a reader came from, and the page of the answers: none of it names the post.
_NOT_THE_POST = frozenset({"from", "source", "page"})
_POST = re.compile(r"/qa/([0-9]{1,18})/?")
_PERSON = re.compile(r"/(user|expert)/([0-9]{1,18})(?:[/?#]|$)")
_ANSWER = re.compile(r"/qa/answer-([0-9]{1,18})(?:[/?#]|$)")
# `回答 2 · 有用 0   2025-03-14`: the number of answers, and the time after the number of 有用.
_LABEL = re.compile(r"回答\s*([0-9]{1,9})\s*·\s*有用\s*[0-9]{1,9}(?:\s+(.{1,40}))?")

# What no text of a person holds; where it does, a tag between them is missing.
_PARTS = (
    "#left, #answer-text, .label, .content-ans, .comment-reply, .read-capacity, .pagination, .honor-icon, "
    ".answer_zan, .comment_item, .created_time, .user, .username, .title, p.text, div.text, h1"
)

SELECTORS: Mapping[str, str] = {
    "list": "#left ul.content",
    "list_post": "#left ul.content > li",
    "list_link_2020": "p.title > a[href]",
    "list_link_2023": "p.title > span > a[href]",
    "list_label": "p.label > span",
    "next": "ul.pagination a",
    "question": "#left > div.content",
    "question_id": "#answer-text[data-question-id]",
    "title_2020": "p.title > span:not(.user-name)",
    "title_2023": "div.title > h1",
    "asker": "p.title > a[href], div.title > a[href]",
    "n_answers": "p.title > strong, div.title > strong",
    "posted": "p.read-capacity > span:first-child",
    "body": "p.text",
    "tags": "ul.detail-tag li",
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
    top = guard.root(body, url)
    if not html.find(top, css["list"]):
        raise UnknownLayout("no list of questions", url)
    rows = [row for row in html.find(top, css["list_post"]) if html.find(row, "p.title")]
    ways = {"list_link_2020": LAYOUT_2020, "list_link_2023": LAYOUT_2023}
    used = [way for way in ways if any(html.find(row, css[way]) for row in rows)]
    if rows and not used:
        raise UnknownLayout("questions in a list without links", url)
    if len(used) > 1:
        raise PageError("a list in two layouts at once", url)
    way = used[0] if used else "list_link_2023"
    base = html.base(top, url)
    listed = [_listed(row, css, way, url, base, fetched_at) for row in rows]
    return guard.list_page(listed, guard.next_link(top, css["next"], url, "»"))


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
        raise PageError("a question in a list without a link", url)
    ((source_id, target),) = targets
    label = guard.at_most_one(row, css["list_label"], "the line under a question in a list", url)
    match = None if label is None else _LABEL.fullmatch(html.words(label))
    if match is None:
        return Listed(source_id, target)
    return Listed(source_id, target, fingerprint=match[1], posted=guard.moment_or_none(match[2], fetched_at))


def post_page(body: Selector, url: str, fetched_at: datetime, css: Mapping[str, str] = SELECTORS) -> PostPage:
    """A question with the answers of one page; the question comes with the first page alone."""
    top = guard.root(body, url)
    box = html.find(top, css["question"])
    titles = {
        layout: matches
        for layout, name in ((LAYOUT_2020, "title_2020"), (LAYOUT_2023, "title_2023"))
        if (matches := [title for each in box for title in html.find(each, css[name])])
    }
    if not titles:
        raise UnknownLayout("no title of a question", url)
    if len(titles) > 1 or len(box) > 1:
        raise PageError("a question that stands twice", url)
    (layout,) = titles
    n_answers = _n_answers(box[0], css, url)
    # Every page repeats the question. Read it on each, so that a page that lost its beginning is an error there too.
    question = _question(top, box[0], titles[layout], css, url, fetched_at)
    answers = _answers(top, css, url, fetched_at, layout, n_answers)
    first = (guard.parameter(url, "page") or 1) <= 1
    result = PostPage(
        question=question if first else None,
        answers=tuple(answer for answer in answers if answer.text),
        next_urls=guard.next_links(top, css["next"], url, "»"),
        layout=layout,
        n_answers=n_answers,
        n_found=len(answers),
    )
    return guard.page(result, url)


def _n_answers(box: Node, css: Mapping[str, str], url: str) -> int:
    words = html.words(guard.one(box, css["n_answers"], "the number of answers", url))
    number = re.fullmatch(r"([0-9]{1,9})\s*个回答", words)
    if number is None:
        raise PageError("the number of answers can not be read", url)
    return int(number[1])


def _question(
    top: Node, box: Node, titles: list[Node], css: Mapping[str, str], url: str, fetched_at: datetime
) -> Question:
    if len(titles) != 1:
        raise PageError("a question with two titles", url)
    source_id = guard.one(top, css["question_id"], "the question's id", url).get("data-question-id", "")
    address = _post(url)
    if address is None or address[1] != source_id:
        raise PageError("the question's id is not that of its address", url)
    posted = guard.one(box, css["posted"], "the time of the question", url)
    tags = [guard.text(tag, f"li, {_PARTS}", "a tag", url) for tag in html.find(box, css["tags"])]
    topic, subtopics = _topics([" ".join(tag.split()) for tag in tags])
    return Question(
        source_id=source_id,
        url=guard.plain_url(url, _NOT_THE_POST),
        title=guard.title_of(guard.text(titles[0], f"strong, span, {_PARTS}", "the title", url), url),
        description=_body(guard.one(box, css["body"], "the question's text", url), url),
        topic=topic,
        subtopics=subtopics,
        author=_person(html.find(box, css["asker"]), "the asker", url)[0],
        posted=guard.moment(html.words(posted), fetched_at, "the question", url),
    )


def _body(node: Node, url: str) -> str:
    after = node.getnext()
    if (node.tail or "").strip() or (after is not None and after.tag == "p" and not after.get("class")):
        # A paragraph within a paragraph ends it: the rest would be lost without a word.
        raise PageError("the question's text runs on behind its end", url)
    return guard.text(node, _PARTS, "the question's text", url, keep_lines=True)


def _answers(
    top: Node, css: Mapping[str, str], url: str, fetched_at: datetime, layout: str, n_answers: int
) -> list[Answer]:
    rows = html.find(top, css["answer"])
    if n_answers and not html.find(top, css["answers"]):
        raise PageError("a question with answers, and no list of them", url)
    if len(html.find(top, css["answer_id"])) != sum(len(html.find(row, css["answer_id"])) for row in rows):
        raise PageError("an answer outside of the list of answers", url)
    answers = [_answer(row, css, url, fetched_at, layout) for row in rows]
    guard.distinct([answer.source_id or "" for answer in answers], "an answer", url)
    return answers


def _answer(row: Node, css: Mapping[str, str], url: str, fetched_at: datetime, layout: str) -> Answer:
    # Always within the row: `//div[@class="text"]` would give every answer the text of the whole page.
    aside = {text for each in html.find(row, css["discussion"]) for text in html.find(each, css["answer_text"])}
    texts = [each for each in html.find(row, css["answer_text"]) if each not in aside]
    if len(texts) != 1:
        raise PageError(f"an answer with {len(texts)} texts", url)
    marks = html.find(row, css["answer_id"])
    ids = {mark.get("data-answer-id") for mark in marks}
    ids |= {match[1] for each in html.find(row, css["answer_link"]) if (match := _ANSWER.search(each.get("href")))}
    source_id = ids.pop() if len(ids) == 1 else None
    if (
        source_id is None
        or not re.fullmatch(r"[0-9]{1,18}", source_id)
        or not html.followed(marks[0] if marks else row)
    ):
        raise PageError("an answer without an id, or with two", url)
    author, role = _person(html.find(row, css["answerer"]), "the writer of an answer", url)
    likes = guard.at_most_one(row, css["likes"], "the number of 有用 of an answer", url)
    answered = guard.at_most_one(row, css["answered"], "the time of an answer", url)
    recommended = bool(html.find(row, css["recommended"]))
    return Answer(
        source_id=source_id,
        author=author,
        author_role=role,
        text=guard.text(texts[0], _PARTS, "an answer's text", url),
        posted=None if answered is None else guard.moment_or_none(html.words(answered), fetched_at),
        likes=None if likes is None else html.number(html.words(likes)),
        # No crawler of the layout of 2023 saw the icon: there its absence says nothing.
        recommended=recommended if layout == LAYOUT_2020 else recommended or None,
    )


def _post(url: str) -> re.Match[str] | None:
    return _POST.fullmatch(urlsplit(url).path)


def _person(links: list[Node], what: str, url: str) -> tuple[str | None, str]:
    """The id of a user and their role; an anonymous one has a link that leads nowhere.

    A link to /expert/ is a counsellor's as the site has it. No licence follows from it.
    """
    person = guard.one_person(links, _PERSON, what, url)
    if not person:
        return None, "unknown"
    kind, number = person
    # The two are numbered apart.
    return (number, "member") if kind == "user" else (f"expert/{number}", "professional")


def _topics(tags: list[str]) -> tuple[str | None, tuple[str, ...]]:
    """The main topic and the other tags, each once."""
    topic = next((tag for tag in tags if tag in TAXONOMY), None)
    return topic, tuple(dict.fromkeys(tag for tag in tags if tag and tag != topic))
