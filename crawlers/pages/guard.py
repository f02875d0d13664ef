"""Checks of every page, whatever its engine: a right record, or an error that says what is wrong and where.

A page that lost a tag still parses: two posts become one, a button's label joins an answer. So each text is taken from
a node that holds no other part of the page, that something follows (a page cut off within it ends there), and that was
decoded in its own encoding.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from lxml import etree
from parsel import Selector

from crawlers import dates, html
from crawlers.html import Node
from crawlers.markup import Anchors, isolate
from crawlers.records import Answer, Listed, ListPage, Moment, PageError, PostPage, Question, UnknownLayout

ID = re.compile(r"[0-9]{1,18}")
_LAYOUT = 3  # answers of which none can be read: our choice
_FEW = 50  # characters to each one that could not be decoded: a slip of the writer's, no wrong encoding
_HAN = r"\u3400-\u9fff"
_C1 = re.compile(r"[\x80-\x84\x86-\x9f]")
_LATIN = re.compile(r"[\xa1-\xff]")
_UTF8_HAN = re.compile(rb"(?:[\xe4-\xe9][\x80-\xbf]{2}){6}")
_ANY_HAN = re.compile(rf"[{_HAN}]")
_PAGER = "[class*='pag'], .pg, nav"
_MOST_LINKS = 40  # of a pager; what is called a page and has more is one
_NO_PAGER = ".t_f, .cm, .text, .discuss, .reply-content"  # texts of people, and comments, which have pagers too
_NEXT = re.compile(r"(?:下一?[页頁]|[后後]一?[页頁]|next(?: page)?)\s*[»›>→]?|[»›>→]", re.IGNORECASE)


def read_html(text: str, anchors: Anchors | None) -> Selector:
    """The page of a source; PageError where it can not be read to its end."""
    try:
        return html.parsed(text if anchors is None else isolate(text, anchors))
    except ValueError as error:
        raise PageError(f"the page: {error}") from error


def root(body: object) -> Node:
    """The tree of a page; UnknownLayout where it is none."""
    node = body.root if isinstance(body, Selector) else None
    if not isinstance(node, etree._Element):
        raise UnknownLayout("no HTML")
    return node


def one(node: Node, css: str, what: str) -> Node:
    """The one element that `css` matches; PageError where there is none, or several."""
    matches = html.find(node, css)
    if len(matches) != 1:
        raise PageError(f"{what}: {len(matches)} on the page, not one")
    return matches[0]


def at_most_one(node: Node, css: str, what: str) -> Node | None:
    """The element that `css` matches, if any; PageError where there are several."""
    return one(node, css, what) if html.find(node, css) else None


def words(node: Node, css: str, what: str) -> str | None:
    """The words of the element that `css` matches, if any; PageError where there are several."""
    match = at_most_one(node, css, what)
    return None if match is None else html.words(match)


def text(node: Node, foreign: str, what: str, drop: str | None = None, keep_lines: bool = False) -> str:
    """The readable text of `node`; PageError where the page ends within it, or it holds another part (`foreign`)."""
    if not html.followed(node):
        raise PageError(f"{what}: the page ends within it")
    if any(part is not node for part in html.find(node, foreign)):
        raise PageError(f"{what}: holds other parts of the page")
    try:
        return html.readable(node, drop, keep_lines)
    except ValueError as error:
        raise PageError(f"{what}: {error}") from error


def moment_or_none(words: str | None, fetched_at: datetime) -> Moment | None:
    """The moment that `words` name, or None where that can not be read: an answer is kept without it."""
    try:
        return None if words is None else dates.moment(words, fetched_at)
    except ValueError:
        return None


def moment(words: str | None, fetched_at: datetime, what: str) -> Moment:
    """The moment that `words` name; PageError where that can not be read: a question without one belongs to no day."""
    at = moment_or_none(words, fetched_at)
    if at is None:
        raise PageError(f"{what}: no time that can be read")
    return at


def title_of(raw: str) -> str:
    """The title, in one line; PageError where it is empty."""
    title = " ".join(raw.split())
    if not title:
        raise PageError("a title without words")
    return title


def answers(rows: Sequence[Any], read: Callable[[Any], Answer | None]) -> tuple[list[Answer | None], int]:
    """The answers of a page, and how many of them can not be read: what is wrong with one costs no other.

    Raises PageError where the page ends within the last one, and where the layout is another: one says so, or of three
    or more not one can be read.
    """
    kept: list[Answer | None] = []
    errors: list[PageError] = []
    for row in rows:
        try:
            kept.append(read(row))
        except PageError as error:
            if isinstance(error, UnknownLayout) or (isinstance(row, etree._Element) and not html.followed(row)):
                raise
            errors.append(error)
    if errors and not kept and len(errors) >= _LAYOUT:
        raise errors[0]
    return kept, len(errors)


def page(
    question: Question | None,
    answers: Sequence[Answer | None],
    next_urls: Iterable[str | None],
    layout: str,
    n_answers: int | None = None,
    *,
    counted: bool = False,
    n_unread: int = 0,
) -> PostPage:
    """The page of a post, with the answers that have text; None among `answers` is one that is hidden or removed.

    Raises PageError where an answer stands twice, or the words were decoded in another encoding than their own.
    """
    kept = tuple(answer for answer in answers if answer is not None and answer.text)
    distinct([answer.source_id for answer in answers if answer is not None], "an answer")
    texts = [] if question is None else [question.title, question.description]
    if garbled("\n".join([*texts, *(answer.text for answer in kept)])):
        raise PageError("decoded in a wrong encoding")
    return PostPage(question, kept, tuple(filter(None, next_urls)), layout, n_answers, len(answers), counted, n_unread)


def list_page(
    listed: Iterable[Listed | None], next_url: str | None, counted: bool = False, n_posts: int | None = None
) -> ListPage:
    """The page of a list: each post once, though a list that moves on may show one twice; None leads elsewhere."""
    posts: dict[str, Listed] = {}
    refused = 0
    for post in listed:
        if post is None:
            refused += 1
        else:
            posts.setdefault(post.source_id, post)
    return ListPage(tuple(posts.values()), next_url, refused, counted, n_posts)


def garbled(text: str) -> bool:
    """Whether a text was decoded in another encoding than its own: UTF-8, GBK and Latin-1 mistaken for each other."""
    if text.count("\N{REPLACEMENT CHARACTER}") * _FEW > len(text):
        return True
    if len(_C1.findall(text)) >= 2:
        return True
    latin = len(_LATIN.findall(text))
    if latin >= 4 and latin * 3 > len(text) and latin > len(_ANY_HAN.findall(text)):
        return True
    # UTF-8 read as GBK gives rare characters; written back, they are Han in UTF-8 again, as a real text is for no more
    # than a few characters (联通).
    return _UTF8_HAN.search(text.encode("gb18030", "replace")) is not None


def one_person(node: Node, css: str, pattern: re.Pattern[str], what: str) -> tuple[str, ...]:
    """The groups of `pattern` in the links that `css` matches; none where nothing matches. PageError for two people."""
    people = {match.groups() for link in html.find(node, css) if (match := pattern.search(link.get("href", "")))}
    if len(people) > 1:
        raise PageError(f"{what}: two people")
    return next(iter(people), ())


def plain_url(url: str, without: Collection[str]) -> str:
    """`url` without its fragment and the parameters named."""
    parts = urlsplit(url)
    kept = [(key, value) for key, value in parse_qsl(parts.query, keep_blank_values=True) if key not in without]
    return urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(kept), ""))


def with_parameter(url: str, name: str, value: int) -> str:
    """`url` with a parameter that has this number, in the place of an older one."""
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query, keep_blank_values=True)), name: str(value)}
    return urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(query), ""))


def parameter(url: str, name: str) -> int | None:
    """The number that a parameter of `url` has; None where it has none."""
    value = dict(parse_qsl(urlsplit(url).query)).get(name, "")
    return int(value) if re.fullmatch(r"[0-9]{1,18}", value) else None


def same_host(link: str, url: str) -> bool:
    """Whether a link of the page at `url` stays with its host: a post elsewhere is not the site's."""
    return urlsplit(link).netloc == urlsplit(url).netloc


def next_link(
    top: Node, css: str, url: str, place: Callable[[str], tuple[str, int]], n_pages: int | None = None
) -> str | None:
    """Where the next page is: what `css` or `rel=next` marks, or a label that sites write there, or the next number.

    `place` gives what an address shows, and which page of it; `n_pages` is how many there are, as the page states it.
    Raises PageError where a mark leads nowhere, or the page names later pages and not the next.
    """
    pagers = [html.find(each, "a[href]") for each in html.find(top, _PAGER)]
    links = dict.fromkeys(html.find(top, f"{css}, [rel~='next'][href]"))
    links |= dict.fromkeys(link for pager in pagers if len(pager) <= _MOST_LINKS for link in pager)
    base, (shown, number) = html.base(top, url) if links else url, place(url)
    chosen = set(html.find(top, css)) if links else set()
    aside = {link for each in html.find(top, _NO_PAGER) for link in html.find(each, "[href]")} if links else set()
    marked: dict[int, str] = {}
    numbered: dict[int, str] = {}
    elsewhere: set[str | None] = set()
    for link in (link for link in links if link not in aside):
        target, words = html.link(link.get("href"), base), html.words(link)
        there, page = (None, 0) if target is None else place(target)
        is_marked = link in chosen or "next" in link.get("rel", "").split() or _NEXT.fullmatch(words) is not None
        if target is None or link.get("href").startswith("#"):  # a script turns the page, or its last one has no next
            if is_marked and not _disabled(link):
                elsewhere.add(None)
        elif there == shown and page > number and (is_marked or words.isdecimal()):
            (marked if is_marked else numbered)[page] = target
        elif there != shown and link in chosen:
            elsewhere.add(target)
    for pages in (marked, numbered):
        if pages and (pages is marked or min(pages) == number + 1):
            return pages[min(pages)]
    if numbered or None in elsewhere or len(elsewhere) > 1 or (not elsewhere and number < (n_pages or 0)):
        raise PageError("the link to the next page leads nowhere, or to two places, or is missing")
    return next(iter(elsewhere), None)


def _disabled(link: Node) -> bool:
    return any("disabled" in each.get("class", "").split() for each in (link, link.getparent()))


def distinct(values: Sequence[object], what: str) -> None:
    """PageError where one of `values` stands twice."""
    if len(set(values)) != len(values):
        raise PageError(f"{what} that stands twice")


# JSON engines


def get(record: object, key: str, kind: type) -> Any:
    """`record[key]`, an instance of `kind`; PageError where it is missing or something else."""
    value = record.get(key) if isinstance(record, dict) else None
    # A truth value is an int to Python, but no id and no number to anyone else.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise PageError(f"`{key}` is missing or of another type")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise PageError(f"`{key}` is greater than any number of a site")
    return html.valid(value) if isinstance(value, str) else value


def get_or_none(record: object, key: str, kind: type) -> Any:
    """`record[key]`, or None where it is missing or null; PageError where it is of another type."""
    if isinstance(record, dict) and record.get(key) is None:
        return None
    return get(record, key, kind)


def number_id(record: object, key: str) -> str:
    """An id that is a whole number, as text."""
    value: int = get(record, key, int)
    if value <= 0:
        raise PageError(f"`{key}` is no id")
    return str(value)


def own_id(record: object, key: str, path: re.Pattern[str], url: str) -> str:
    """The id of a topic; PageError where it is not the one in group 1 of its address's `path`."""
    source_id = number_id(record, key)
    address = path.fullmatch(urlsplit(url).path)
    if address is None or address[1] != source_id:
        raise PageError("the topic's id is not that of its address")
    return source_id


def forum_of(url: str, path: re.Pattern[str], engine: str) -> str:
    """The address at which a forum begins (group 1 of `path`), without a slash at its end."""
    parts = urlsplit(url)
    match = path.fullmatch(parts.path)
    if match is None:
        raise PageError(f"no address of a forum on {engine}")
    return f"{parts.scheme}://{parts.netloc}{match[1]}"


def count_of_answers(record: object, key: str) -> int | None:
    """The number of answers, where `record[key]` counts the question as well; None where it is not stated."""
    posts: int | None = get_or_none(record, key, int)
    return None if posts is None else max(0, posts - 1)


def count(record: object, key: str) -> int:
    """A number of things."""
    value: int = get(record, key, int)
    if value < 0:
        raise PageError(f"`{key}` is no number of things")
    return value


def html_text(markup: str, drop: str, what: str) -> str:
    """The readable text of the HTML in a field of JSON."""
    if len(markup) > 10 * html.LONGEST_TEXT:
        raise PageError(f"{what}: more markup than a person writes")
    try:
        return html.readable(html.fragment(markup), drop)
    except ValueError as error:
        raise PageError(f"{what}: {error}") from error
