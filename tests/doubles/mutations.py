"""What may happen to a page: it is cut, loses tags, is in a wrong charset, has an id or a part twice, nests deeply."""

import json
import random
import re
from typing import Any

# Without one of these tags a page hides nothing, and says other things: no parser could know.
_HIDES = re.compile(r"jammer|quote|locked|pstatus|display: ?none|aimg_tip|ignore_js_op|<!|script", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_PART = re.compile(r" (?:id|class|data-[a-z-]+)=")
ID = re.compile(r"(?<![0-9.])[1-9][0-9]{2,}(?![0-9.])")


def cut(source: str, rng: random.Random) -> str:
    return source[: rng.randrange(len(source))]


def without_tags(source: str, rng: random.Random) -> str:
    tags = [tag for tag in _TAG.finditer(source) if not _HIDES.search(tag.group())]
    for tag in sorted(rng.sample(tags, min(len(tags), rng.randint(1, 4))), key=lambda tag: -tag.start()):
        # The end of what hides hides too: only ends of the elements that no hiding one can be.
        if tag.group() not in {"</font>", "</i>", "</div>", "</span>", "</blockquote>"} or not _HIDES.search(source):
            source = source[: tag.start()] + source[tag.end() :]
    return source


def in_a_wrong_charset(source: str, rng: random.Random) -> str:
    """As a crawler gives it that believed a wrong header."""
    right, wrong = rng.choice([("utf-8", "gb18030"), ("gb18030", "utf-8"), ("utf-8", "latin-1"), ("gb18030", "latin-1"),
                               ("utf-8", "cp1252")])  # fmt: skip
    return source.encode(right).decode(wrong, "replace")


def with_doubled_ids(source: str, rng: random.Random) -> str:
    """One id takes the place of another, in one place or in all."""
    ids = sorted(set(ID.findall(source)))
    if len(ids) < 2:
        return source
    old, new = rng.sample(ids, 2)
    return re.sub(rf"(?<![0-9.]){old}(?![0-9.])", new, source, count=rng.choice([0, 1, 2]))


def with_a_part_twice(source: str, rng: random.Random) -> str:
    """A line that begins a part of the page stands twice; of a line of a text alone no parser could know."""
    lines = source.split("\n")
    parts = [number for number, line in enumerate(lines) if _PART.search(line) and not _HIDES.search(line)]
    number = rng.choice(parts)
    return "\n".join([*lines[: number + 1], *lines[number:]])


def deeply_nested(source: str, rng: random.Random) -> str:
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


def mutated(source: str, rng: random.Random, *, is_json: bool) -> tuple[str, Any]:
    """The name of what was done, and what a parser is given: the source of HTML, or the body that JSON holds."""
    if is_json and rng.random() < 0.8:
        return "wrong_json", wrong_json(source, rng)
    mutation = rng.choice((in_a_wrong_charset, with_doubled_ids) if is_json else HTML_MUTATIONS)
    broken = mutation(source, rng)
    try:
        return mutation.__name__, json.loads(broken) if is_json else broken
    except json.JSONDecodeError:  # a charset can eat a quote: such a page never reaches a parser
        return "wrong_json", wrong_json(source, rng)
