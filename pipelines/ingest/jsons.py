"""The records of a JSON file: a list, one object, or one object a line."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from pipelines.ingest.fields import Node, Unfit, kind
from pipelines.ingest.records import MAX_RECORD_CHARS, Broken, Record, Source

# A raw line break or tab within a string is what its writer meant; a NUL is found later, as `bad_unicode`.
_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"\s*")
_NEAR = 1 << 16  # characters; nearly all records are shorter
# What the nesting of a value follows from; a text is one of these, whatever stands in it.
_MARKS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:(?P<closed>")|\Z)|[\[\]{}]', re.DOTALL)
_SEVERAL_OBJECTS = re.compile(r"\{.*\n\{", re.DOTALL)  # at the margin: a printed object's own are indented


class _TooLong(Unfit):
    """Raised for a value of more than MAX_RECORD_CHARS, of which nothing is decoded beyond."""

    def __init__(self, at: int) -> None:
        super().__init__("too_long", f"more than {MAX_RECORD_CHARS:,} characters, from character {at}")


class Element(NamedTuple):
    """A value of a file and its place."""

    where: str
    value: object


def records(source: Source, convert: Callable[[str, Node], Record]) -> Iterator[Record | Broken]:
    """What `convert` makes of each object of the file; what is none, or unfit, is Broken."""
    for element in elements(source):
        if isinstance(element, Broken):
            yield element
        elif not isinstance(element.value, dict):
            yield Broken(element.where, "not_an_object", f"is {kind(element.value)}")
        else:
            yield fitted(element.where, partial(convert, element.where, Node(element.value)))


def fitted(where: str, convert: Callable[[], Record]) -> Record | Broken:
    """What `convert` makes, or the Broken record that its Unfit says."""
    try:
        return convert()
    except Unfit as unfit:
        return Broken(where, unfit.reason, unfit.detail)


def elements(source: Source) -> Iterator[Element | Broken]:
    """The values of the file, each with its place: ``name[index]``, ``name:line``, or ``name`` for a single one.

    A list is read up to the first value that cannot be read: what follows it has no known beginning. A value that is
    too long is not read, and what follows it is.
    """
    begin = _skip(source.text, 0)
    if source.text.startswith("[", begin):
        yield from _list(source)
    elif source.name.lower().endswith((".jsonl", ".ndjson")) or _SEVERAL_OBJECTS.match(source.text, begin):
        yield from _lines(source)
    else:
        yield whole(source)


def whole(source: Source) -> Element | Broken:
    """The file as one value."""
    try:
        if len(source.text) > MAX_RECORD_CHARS and len(source.text.strip()) > MAX_RECORD_CHARS:
            raise _TooLong(0)
        value, end = _value(source.text, _skip(source.text, 0))
    except Unfit as unfit:
        return Broken(source.name, unfit.reason, unfit.detail)
    if _skip(source.text, end) < len(source.text):
        return Broken(source.name, "bad_json", f"text follows the value at character {end}")
    return Element(source.name, value)


def _list(source: Source) -> Iterator[Element | Broken]:
    text = source.text
    at = _skip(text, _skip(text, 0) + 1)
    index = 0
    if text[at : at + 1] == "]":
        at += 1
    else:
        while True:
            where = f"{source.name}[{index}]"
            try:
                value, at = _value(text, at)
            except _TooLong as unfit:
                yield Broken(where, unfit.reason, unfit.detail)
                at = _end(text, at, len(text)) or len(text)
            except Unfit as unfit:
                yield Broken(where, unfit.reason, f"{unfit.detail}; the list was read no further")
                return
            else:
                yield Element(where, value)
            index += 1
            at = _skip(text, at)
            mark = text[at : at + 1]
            at = _skip(text, at + 1)
            if mark == "]":
                break
            if mark != ",":
                detail = "the file ends within the list" if not mark else f"no comma at character {at}"
                yield Broken(f"{source.name}[{index}]", "bad_json", detail)
                return
    if _skip(text, at) < len(text):
        yield Broken(f"{source.name}[{index}]", "bad_json", f"text follows the list at character {at}")


def _lines(source: Source) -> Iterator[Element | Broken]:
    # Only a line feed ends a line: U+2028 and its like are part of what people wrote.
    for number, line in enumerate(_split(source.text), start=1):
        where = f"{source.name}:{number}"
        if not line.strip():
            continue
        try:
            if len(line) > MAX_RECORD_CHARS:
                raise _TooLong(0)
            value, end = _value(line, _skip(line, 0))
        except Unfit as unfit:
            yield Broken(where, unfit.reason, unfit.detail)
            continue
        if _skip(line, end) < len(line):
            yield Broken(where, "bad_json", f"text follows the value at column {end + 1}")
        else:
            yield Element(where, value)


def _split(text: str) -> Iterator[str]:
    """The lines of a text, one at a time."""
    at = 0
    while (end := text.find("\n", at)) >= 0:
        yield text[at:end]
        at = end + 1
    yield text[at:]


def _value(text: str, at: int) -> tuple[object, int]:
    """The value that begins at a character, and where it ends. Of a long text no more is decoded than a record may
    have: decoded, it takes many times the memory.
    """
    part = text[at : at + _NEAR]
    # What is wrong with a part that is cut is nothing to be told, and takes a look at all before it to tell.
    with suppress(ValueError, RecursionError):
        value, length = _DECODER.raw_decode(part)
        if length < len(part) or at + length == len(text):
            return value, at + length
    part = text[at : at + MAX_RECORD_CHARS + 1]
    whole = at + len(part) == len(text)
    try:
        value, length = _decoded(part, at, text)
    except Unfit:
        if whole or _end(text, at, at + MAX_RECORD_CHARS) is not None:
            raise
        raise _TooLong(at) from None
    if length > MAX_RECORD_CHARS:
        raise _TooLong(at)
    return value, at + length


def _decoded(part: str, at: int, text: str) -> tuple[object, int]:
    """The value that a part of a text begins with, and how long it is. What is wrong is said of the whole text."""
    try:
        return _DECODER.raw_decode(part)
    except json.JSONDecodeError as error:
        line, column = text.count("\n", 0, at) + error.lineno, error.colno
        if error.lineno == 1:
            column += at - (text.rfind("\n", 0, at) + 1)
        raise Unfit("bad_json", f"{error.msg.rstrip(': ')} at line {line}, column {column}") from error
    except ValueError as error:
        raise Unfit("bad_json", f"a number too long to read, after character {at}") from error
    except RecursionError as error:
        raise Unfit("bad_json", f"nested too deeply, after character {at}") from error


def _end(text: str, at: int, last: int) -> int | None:
    """Where the value that begins at a character ends, by its brackets and quotation marks alone; None where that is
    not before `last`.
    """
    depth = 0
    for mark in _MARKS.finditer(text, at, last):
        if mark[0][0] == '"' and mark["closed"] is None:
            return None
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark[0], 0)
        if depth <= 0:
            return mark.end()
    return None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
