"""The markup of an answer, closed in itself before its page is parsed: no tag that a person pasted reaches beyond it.

A tag too few or too many moves what follows into the answer, or out of the list, and behind tags that stand too deeply
within each other a parser gives up. So the text of an answer is cut out of the source between what the site itself
writes before and behind it, and put back with every tag closed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from lxml import etree

from crawlers import html
from crawlers.html import Node

UNREAD = "unread-text"  # an element of ours in the place of a text that can not be closed

_DEEPEST = html.DEEPEST // 2  # in one text; the page around it has some, too
_MOST = 100_000  # tags of one answer: beyond them its end is not looked for
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/<>]*)(?:[\s/][^<>]*)?>")
_SPACE = re.compile(r"\s*")
_HALF = re.compile(r"<[a-zA-Z/!?]")
_PAGE = re.compile(r"</?(?:html|head|body)\b[^<>]*>|<!doctype[^<>]*>", re.IGNORECASE)
# No tag is read in them: without their end, the rest of a page is theirs.
_RAW = "script|style|textarea|title|xmp|iframe|noembed|noframes|plaintext|select|template"
_UNSEEN = re.compile(rf"<!--|<({_RAW})\b[^<>]*>", re.IGNORECASE)
_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)


@dataclass(frozen=True, slots=True)
class Anchors:
    """What a site writes around an answer.

    `begins` is where an answer begins, `text` the tag behind which its text does, `follows` what stands after the text;
    `between` splits what lies before that: the text, and the tags that close it, which are `closing` where they lack.
    """

    begins: re.Pattern[str]
    text: re.Pattern[str]
    follows: re.Pattern[str]
    between: re.Pattern[str]
    closing: str


def isolate(page: str, anchors: Anchors) -> str:
    """The source of a page with the text of every answer closed in itself; unchanged where all of them are.

    In the place of a text that can not be read to its end stands an element `UNREAD`.
    """
    starts = [match.start() for match in anchors.begins.finditer(page)]
    bounds, seen = [*starts, len(page)], _blank(page)
    pieces, at = [page[: bounds[0]]], 0
    while at < len(starts):
        begin, following = bounds[at], at + 1
        end = _end_of_answer(seen, begin, anchors)
        if end is not None:  # what was copied from a page may stand within it
            while bounds[following] < end:
                following += 1
            pieces.append(page[begin : bounds[following]])
        else:
            # A text may hold the beginning of another answer: one that has not come to its end goes on.
            parts = enumerate(pairwise(bounds[at:]), following)
            following = next((n for n, part in parts if anchors.follows.search(page, *part)), len(starts))
            pieces.append(_mended(page[begin : bounds[following]], anchors))
        at = following
    return "".join(pieces)


def _end_of_answer(seen: str, begin: int, anchors: Anchors) -> int | None:
    """Where the answer ends that begins at `begin`, if all its tags are closed in order and another part follows it."""
    tags = islice(_nesting(seen, begin), _MOST)
    try:
        end = next((end for end, depth in tags if depth == 0 or depth > _DEEPEST), begin)
    except ValueError:
        return None
    rest = _SPACE.match(seen, end).end()  # type: ignore[union-attr]
    is_last = rest == len(seen) or seen.startswith("</", rest)
    if not (is_last or anchors.begins.match(seen, rest)) or not anchors.follows.search(seen, begin, end):
        return None
    return None if _is_unfinished(seen[begin:end]) else end


def _mended(answer: str, anchors: Anchors) -> str:
    text, follows = anchors.text.search(answer), list(anchors.follows.finditer(answer))
    if text is None or not follows or text.end() > follows[-1].start():
        return answer
    between = anchors.between.fullmatch(answer, text.end(), follows[-1].start())
    written, closing = between.groups() if between else (answer[text.end() : follows[-1].start()], None)
    try:
        closed = close(written)
    except ValueError:
        closed = f"<{UNREAD}></{UNREAD}>"
    return answer[: text.end()] + closed + (closing or anchors.closing) + answer[follows[-1].start() :]


def close(markup: str) -> str:
    """A piece of HTML with each tag closed that it opens, and no other; unchanged where that holds.

    Raises ValueError where it can not be read to its end: half a tag, a script without an end, tags in a great depth.
    """
    seen = _blank(markup)
    if _is_unfinished(seen):
        raise ValueError("markup without its end")
    try:
        depths = [depth for _, depth in _nesting(seen)]
    except ValueError:
        depths = [-1]
    closed = markup
    if depths[-1:] not in ([], [0]):
        bodies = html.find(html.fragment(_PAGE.sub("", markup)), "body")
        depths = [depth for body in bodies for depth in _depths(body)]
        whole = etree.tostring(bodies[0], encoding="unicode", method="html", with_tail=False) if bodies else "<></body"
        closed = whole[whole.index(">") + 1 : whole.rindex("</body")]
    if max(depths, default=0) > _DEEPEST:
        raise ValueError("tags in a great depth")
    return closed


def _depths(node: Node) -> Iterator[int]:
    depth = 0
    for event, _ in etree.iterwalk(node, events=("start", "end")):
        depth += 1 if event == "start" else -1
        yield depth


def _is_unfinished(seen: str) -> bool:
    """Whether what stands behind `seen` would be part of a tag, a comment or a script of it."""
    return _UNSEEN.search(seen) is not None or _HALF.search(_TAG.sub("", _PAGE.sub("", seen))) is not None


def _nesting(seen: str, begin: int = 0) -> Iterator[tuple[int, int]]:
    """Where each tag ends, and how many elements are open behind it; ValueError for one that closes no open element."""
    opened: list[str] = []
    for match in _TAG.finditer(seen, begin):
        name = match[2].lower()
        if name in _VOID:
            continue
        if not match[1]:
            opened.append(name)
        elif opened and opened[-1] == name:
            opened.pop()
        else:
            raise ValueError("a tag that closes nothing")
        yield match.end(), len(opened)


def _blank(markup: str) -> str:
    """`markup` with spaces in the place of comments and of elements in which no tag is read, where they end."""
    pieces, at = [], 0
    while (match := _UNSEEN.search(markup, at)) is not None:
        ending = re.compile(rf"</{match[1]}\s*>" if match[1] else "-->", re.IGNORECASE)
        end = ending.search(markup, match.end())
        if end is None:
            break
        pieces += [markup[at : match.start()], " " * (end.end() - match.start())]
        at = end.end()
    return "".join([*pieces, markup[at:]])
