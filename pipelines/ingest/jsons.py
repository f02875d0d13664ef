"""The records of a JSON file: a list, one object, or one object a line."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from pipelines.ingest.fields import Node, Unfit, kind
from pipelines.ingest.records import Broken, Record, Source

# A raw line break or tab within a string is what its writer meant; a NUL is found later, as `bad_unicode`.
_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"\s*")
_SEVERAL_OBJECTS = re.compile(r"\{.*\n\{", re.DOTALL)  # at the margin: a printed object's own are indented


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

    A list is read up to the first value that cannot be read: what follows it has no known beginning.
    """
    text = source.text.strip()
    if text.startswith("["):
        yield from _list(source)
    elif source.name.lower().endswith((".jsonl", ".ndjson")) or _SEVERAL_OBJECTS.match(text):
        yield from _lines(source)
    else:
        yield whole(source)


def whole(source: Source) -> Element | Broken:
    """The file as one value."""
    try:
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
            except Unfit as unfit:
                yield Broken(where, unfit.reason, f"{unfit.detail}; the list was read no further")
                return
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
    for number, line in enumerate(source.text.split("\n"), start=1):
        where = f"{source.name}:{number}"
        if not line.strip():
            continue
        try:
            value, end = _value(line, _skip(line, 0))
        except Unfit as unfit:
            yield Broken(where, unfit.reason, unfit.detail)
            continue
        if _skip(line, end) < len(line):
            yield Broken(where, "bad_json", f"text follows the value at column {end + 1}")
        else:
            yield Element(where, value)


def _value(text: str, at: int) -> tuple[object, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise Unfit("bad_json", f"{error.msg.rstrip(': ')} at line {error.lineno}, column {error.colno}") from error
    except ValueError as error:
        raise Unfit("bad_json", f"a number too long to read, after character {at}") from error
    except RecursionError as error:
        raise Unfit("bad_json", f"nested too deeply, after character {at}") from error


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
