"""Plain text of a node as a reader sees it, with its line ends; links and numbers of a page.

Selectors are compiled once and applied to lxml's elements directly: ten answers a page are a hundred queries, and
through parsel they would cost as much as the fetching.
"""

import re
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import urljoin, urlsplit

from cssselect import HTMLTranslator
from lxml import etree
from parsel import Selector

Node: TypeAlias = Any  # an lxml element; lxml has no types

LONGEST_TEXT = 200_000  # characters, our choice: no person writes more in one piece
# Elements within each other, our choice. libxml2 leaves the rest of a page unread at 2,048 of them.
DEEPEST = 2_000

_NOT_READ = frozenset(
    ("script", "style", "template", "noscript", "textarea", "select", "button", "input", "iframe", "object", "svg",
     "head", "title")
)  # fmt: skip
_BLOCKS = frozenset(
    ("address", "article", "aside", "blockquote", "center", "dd", "details", "div", "dl", "dt", "fieldset", "figure",
     "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "legend", "li", "main", "nav", "ol", "p",
     "pre", "section", "summary", "table", "tbody", "td", "th", "tr", "ul")
)  # fmt: skip
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_CJK = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u303f"
_BROKEN_IN_SOURCE = re.compile(rf"(?<=[{_CJK}])[ \t\r\f\v]*\n\s*(?=[{_CJK}])")
_SPACES = re.compile(r"\s+")
_EMPTY_LINES = re.compile(r"\n{3,}")
_INVALID = re.compile("[\x00\ud800-\udfff]")
_NUMBER = re.compile(r"(?<![0-9.,])([0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,12})(?![0-9])(\.[0-9]{1,4})?\s*([万萬])?")


@lru_cache(maxsize=1024)
def _compiled(css: str) -> Any:
    return etree.XPath(HTMLTranslator().css_to_xpath(css))


def find(node: Node, css: str) -> list[Node]:
    """The elements in `node` (itself among them) that the selector `css` matches, in the page's order."""
    return list(_compiled(css)(node))


def parsed(html: str) -> Selector:
    """A page in HTML.

    Raises ValueError where the parser gave up before the end, as where tags are nested too deeply: its tree would look
    like a whole, shorter page.
    """
    # parsel's own parser keeps its errors to itself.
    parser = etree.HTMLParser(recover=True, encoding="utf-8", huge_tree=True)
    root = etree.fromstring(valid(html).strip().encode() or b"<html/>", parser=parser)
    if root is None:  # of a comment alone, as parsel has it
        root = etree.fromstring(b"<html/>", parser=parser)
    # Where a parser gives up, it stands within all that is open. That counts where its log of errors is full.
    last, depth = root, 0
    while len(last):
        last, depth = last[-1], depth + 1
    if depth >= DEEPEST or any(error.level == etree.ErrorLevels.FATAL for error in parser.error_log):
        raise ValueError("markup that the parser did not read to its end")
    return Selector(root=root, type="html")


def fragment(html: str) -> Node:
    """The tree of a piece of HTML, as JSON engines give it; ValueError where it can not be read to its end."""
    root = parsed(html).root
    if any(isinstance(each.tag, str) for each in root.itersiblings()):  # another document begins behind </html>
        raise ValueError("markup that goes on behind its own end")
    return root


def valid(text: str) -> str:
    """`text` without what UTF-8 can not write: lone halves of a pair, as JSON may escape them, and NUL."""
    return _INVALID.sub("", text)


def base(top: Node, url: str) -> str:
    """The address that the links of the page at `url` start from."""
    href = next((each.get("href") for each in find(top, "head > base[href]")), "")
    return link(href, url) or url


def link(href: str | None, base: str) -> str | None:
    """`href` as an absolute address; None where it leads nowhere that HTTP can follow."""
    if not href:
        return None
    try:
        target = urljoin(base, href.strip())
        parts = urlsplit(target)
        _ = parts.port, target.encode()  # no request can be made of http://a:b, nor of half a character
        return target if parts.scheme in {"http", "https"} and parts.hostname else None
    except ValueError:  # urllib's answer to http://[
        return None


def followed(node: Node) -> bool:
    """Whether another element comes after `node`. Nothing does where the page was cut off within it."""
    while node is not None:
        if node.getnext() is not None:
            return True
        node = node.getparent()
    return False


def number(text: str | None) -> int | None:
    """The first number in `text`: 3个回答, 1,204, 1.2万."""
    match = _NUMBER.search(text or "")
    if match is None:
        return None
    return round(float(match[1].replace(",", "") + (match[2] or "")) * (10_000 if match[3] else 1))


def words(node: Node) -> str:
    """The text of a node that is one line: a name, a number, a date. Of a longer one its beginning."""
    return " ".join(_read(node, None, False)[:1000].split())


def readable(node: Node, drop: str | None = None, keep_lines: bool = False) -> str:
    """The text of a node as a reader sees it.

    Paragraphs, other blocks and <br> become line ends, one empty line at most between two lines. What a page hides is
    left out: scripts, `display: none`, Discuz's jammers; and what `drop` selects: quotes, notes of an edit. With
    `keep_lines` line ends of the source count too, as where a site shows what was typed in one block.

    Raises ValueError for a text longer than `LONGEST_TEXT`.
    """
    text = _read(node, drop, keep_lines)
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"a text of more than {LONGEST_TEXT} characters")
    return text


def _read(node: Node, drop: str | None, keep_lines: bool) -> str:
    dropped = frozenset(find(node, drop) if drop else ())
    lines = _Lines(keep_lines)
    events = etree.iterwalk(node, events=("start", "end", "comment", "pi"))
    skipped: Node | None = None
    for event, each in events:
        block = each.tag in _BLOCKS
        if event == "start":
            if each in dropped or (each is not node and _hidden(each)):
                skipped = each
                events.skip_subtree()
                continue
            if block:
                lines.edge()
            elif each.tag == "br":
                lines.end()
            lines.type(each.text)
            continue
        if each is skipped:
            skipped = None
        elif block:
            lines.edge()
        if each is not node:
            lines.type(each.tail)
    return lines.text()


class _Lines:
    """The lines of a text as they come out of a tree."""

    def __init__(self, keep_lines: bool) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []
        self._keep_lines = keep_lines
        self._ended = False

    def type(self, text: str | None) -> None:
        """A text node. Its white space is layout, unless the site shows line ends as they were typed."""
        if not text:
            return
        if not self._keep_lines:
            # A line end between two Chinese characters is the template's, and a space there would be ours.
            self._line.append(_SPACES.sub(" ", _BROKEN_IN_SOURCE.sub("", text)))
        else:
            typed = text.replace("\r\n", "\n").replace("\r", "\n")
            if self._ended:  # <br> with a line end behind it is one line end
                typed = typed.lstrip(" \t").removeprefix("\n")
            first, *others = typed.split("\n")
            self._line.append(first)
            for other in others:
                self.end()
                self._line.append(other)
        self._ended = False

    def edge(self) -> None:
        """A block begins or ends: one line end, however many blocks meet here."""
        if any(not piece.isspace() for piece in self._line):
            self.end()
        else:
            self._line.clear()

    def end(self) -> None:
        """A line ends, even an empty one."""
        self._lines.append(_SPACES.sub(" ", "".join(self._line)).strip())
        self._line.clear()
        self._ended = True

    def text(self) -> str:
        """All lines; one empty line at most between two, none at either end."""
        self.end()
        return _EMPTY_LINES.sub("\n\n", "\n".join(self._lines)).strip("\n")


def _hidden(node: Node) -> bool:
    if node.tag in _NOT_READ or node.get("hidden") is not None or "jammer" in node.get("class", "").split():
        return True
    return _HIDING.search(node.get("style", "")) is not None
