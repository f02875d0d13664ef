"""Broken pages: each gives a right record or an error of ours, and never another exception.

A record is right when its ids and texts are some of those of the whole page. White space is left out of the comparison:
a page that lost a <br> has a line less, and is no less right.
"""

import json
import random
import re
from typing import Any

import pytest
from saved_pages import SavedPage, saved_pages

from crawlers.records import PageError

N_PAGES = 2_000
SEED = 20250314

# Without one of these tags a page hides nothing, and says other things: no parser could know.
_HIDES = re.compile(r"jammer|quote|locked|pstatus|display: ?none|aimg_tip|ignore_js_op|<!|script", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_PART = re.compile(r" (?:id|class|data-[a-z-]+)=")
_ID = re.compile(r"(?<![0-9.])[1-9][0-9]{2,}(?![0-9.])")


def cut(page: SavedPage, source: str, rng: random.Random) -> str:
    return source[: rng.randrange(len(source))]


def without_tags(page: SavedPage, source: str, rng: random.Random) -> str:
    tags = [tag for tag in _TAG.finditer(source) if not _HIDES.search(tag.group())]
    for tag in sorted(rng.sample(tags, min(len(tags), rng.randint(1, 4))), key=lambda tag: -tag.start()):
        # The end of what hides hides too: only ends of the elements that no hiding one can be.
        if tag.group() not in {"</font>", "</i>", "</div>", "</span>", "</blockquote>"} or not _HIDES.search(source):
            source = source[: tag.start()] + source[tag.end() :]
    return source


def in_a_wrong_charset(page: SavedPage, source: str, rng: random.Random) -> str:
    """As a crawler gives it that believed a wrong header."""
    right, wrong = rng.choice([("utf-8", "gb18030"), ("gb18030", "utf-8"), ("utf-8", "latin-1"), ("gb18030", "latin-1"),
                               ("utf-8", "cp1252")])  # fmt: skip
    return source.encode(right).decode(wrong, "replace")


def with_doubled_ids(page: SavedPage, source: str, rng: random.Random) -> str:
    """One id takes the place of another, in one place or in all."""
    ids = sorted(set(_ID.findall(source)))
    if len(ids) < 2:
        return source
    old, new = rng.sample(ids, 2)
    return re.sub(rf"(?<![0-9.]){old}(?![0-9.])", new, source, count=rng.choice([0, 1, 2]))


def with_a_part_twice(page: SavedPage, source: str, rng: random.Random) -> str:
    """A line that begins a part of the page stands twice; of a line of a text alone no parser could know."""
    lines = source.split("\n")
    parts = [number for number, line in enumerate(lines) if _PART.search(line) and not _HIDES.search(line)]
    number = rng.choice(parts)
    return "\n".join([*lines[: number + 1], *lines[number:]])


def deeply_nested(page: SavedPage, source: str, rng: random.Random) -> str:
    tags = [tag for tag in _TAG.finditer(source) if not _HIDES.search(tag.group())]
    at = rng.choice(tags).end() if tags else rng.randrange(len(source))
    return source[:at] + rng.choice(["<div>", "<b>", "<ul><li>", "<table><tr><td>", "<p>"]) * 3_000 + source[at:]


HTML_MUTATIONS = (cut, without_tags, in_a_wrong_charset, with_doubled_ids, with_a_part_twice, deeply_nested)


def _places(body: Any) -> list[tuple[Any, Any]]:
    """Where each value of a JSON document stands: its container and its key."""
    places, containers = [], [body]
    while containers:
        container = containers.pop()
        inner = container.items() if isinstance(container, dict) else enumerate(container)
        for key, value in inner:
            if key not in ("hidden", "deleted", "deleted_at", "user_deleted", "post_type"):  # as _HIDES
                places.append((container, key))
            if isinstance(value, dict | list):
                containers.append(value)
    return places


def wrong_json(source: str, rng: random.Random) -> Any:
    """Fields missing, doubled, of wrong types, deeply nested."""
    body = json.loads(source)
    for _ in range(rng.randint(1, 3)):
        places = _places(body)
        if not places:
            break
        container, key = rng.choice(places)
        kind = rng.choice(["missing", "type", "deep", "twice"])
        if kind == "missing":
            del container[key]
        elif kind == "type":
            wrong = [None, True, -1, 2**80, 0.5, [], {}, [[]], {"id": None}]
            # Another text in the place of one is no fault that anyone could find.
            container[key] = rng.choice(wrong if isinstance(container[key], str) else [*wrong, "<b>", "\ud800"])
        elif kind == "deep":
            for _ in range(rng.choice([3, 500])):
                container[key] = [container[key]] if rng.random() < 0.5 else {"x": container[key]}
        elif isinstance(container, list):
            container.insert(rng.randrange(len(container) + 1), container[key])
    return body


def bare(text: str) -> str:
    return re.sub(r"\s+", "", text)


def said(record: Any) -> set[tuple[str | None, str]]:
    """The ids of a page, each with its text."""
    pairs = {(post.source_id, "") for post in getattr(record, "posts", ())}
    pairs |= {(answer.source_id, bare(answer.text)) for answer in getattr(record, "answers", ())}
    question = getattr(record, "question", None)
    if question is not None:
        pairs |= {(question.source_id, bare(question.title)), (question.source_id, bare(question.description))}
    return pairs


def mutate(page: SavedPage, rng: random.Random) -> tuple[str, Any]:
    """The name of what was done, and the body that the parser gets."""
    if page.is_json and rng.random() < 0.8:
        return "wrong_json", wrong_json(page.source(), rng)
    mutation = rng.choice((in_a_wrong_charset, with_doubled_ids) if page.is_json else HTML_MUTATIONS)
    source = mutation(page, page.source(), rng)
    try:
        return mutation.__name__, json.loads(source) if page.is_json else source
    except json.JSONDecodeError:  # a charset can eat a quote: such a page never reaches a parser
        return "wrong_json", wrong_json(page.source(), rng)


PAGES = saved_pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_broken_page_gives_a_right_record_or_an_error_of_ours(page: SavedPage):
    whole = said(page.parse(page.source()))
    texts = {text for _, text in whole}
    numbers = {source_id for source_id, _ in whole} | set(_ID.findall(page.source()))
    outcomes = {"record": 0, "error": 0}
    for number in range(N_PAGES // len(PAGES)):
        rng = random.Random(f"{SEED}\x1f{page.name}\x1f{number}")
        name, body = mutate(page, rng)
        try:
            record = page.parse(body) if isinstance(body, str) else page.parser(body, page.url, page.fetched_at)
        except PageError:
            outcomes["error"] += 1
            continue
        outcomes["record"] += 1
        pairs = said(record)
        if name == "with_doubled_ids":
            # An id that took another's place everywhere makes a page without fault.
            right = {text for _, text in pairs} <= texts and {source_id for source_id, _ in pairs} <= numbers
        else:
            right = pairs <= whole
        assert right, f"{name} {number}: {sorted(source_id or '' for source_id, _ in pairs - whole)}"
    assert min(outcomes.values()) > 0, outcomes
