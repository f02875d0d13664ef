"""The records of a JSON file: a list, one object, or one object a line."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from pipelines.ingest.forms import FormT, Unfit, fill, kind
from pipelines.ingest.records import MAX_RECORD_CHARS, Answer, Broken, Record, Source

T = TypeVar("T")

# A raw line break or tab within a string is what its writer meant; a NUL is dropped later, as `bad_unicode`.
_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"\s*")
_NEAR = 1 << 16  # characters; nearly all records are shorter
# The nesting of a value follows from these; a text is one of them, whatever its content.
_MARKS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:(?P<closed>")|\Z)|[\[\]{}]', re.DOTALL)
_DEPTH = {"[": 1, "{": 1, "]": -1, "}": -1}
_SEVERAL_OBJECTS = re.compile(r"\{.*\n\{", re.DOTALL)  # at the margin: those of a printed object are indented


class _TooLong(Unfit):
    """Raised for a value of more than MAX_RECORD_CHARS, which is not decoded any further."""

    def __init__(self, at: int) -> None:
        super().__init__("too_long", f"more than {MAX_RECORD_CHARS:,} characters, from character {at}")


class Element(NamedTuple):
    """A value of a file and its place."""

    where: str
    value: object


def records(source: Source, form: type[FormT], convert: Callable[[str, FormT], Record]) -> Iterator[Record | Broken]:
    """What `convert` makes of each object of the file, read into `form`; what does not fit is Broken."""
    return objects(source, lambda where, value: convert(where, fill(form, value)))


def objects(source: Source, convert: Callable[[str, dict[str, Any]], Record]) -> Iterator[Record | Broken]:
    """What `convert` makes of each object of the file; anything else, and what does not fit, is Broken."""

    def of_object(where: str, value: object) -> Record:
        if not isinstance(value, dict):
            raise Unfit("not_an_object", f"is {kind(value)}")
        return convert(where, value)

    for element in elements(source):
        yield element if isinstance(element, Broken) else converted(*element, of_object)


def whole_file(source: Source, convert: Callable[[str, object], Record]) -> Iterator[Record | Broken]:
    """What `convert` makes of a file that is one record."""
    element = _only_value(source.text, source.name)
    yield element if isinstance(element, Broken) else converted(*element, convert)


def converted(where: str, value: Any, convert: Callable[[str, Any], T]) -> T | Broken:
    """What `convert` makes of a value, or the Broken record of the Unfit that it raises."""
    try:
        return convert(where, value)
    except Unfit as unfit:
        return Broken(where, unfit.reason, unfit.detail)


def answers(
    places: Iterable[tuple[str, object]], convert: Callable[[str, Any], Answer]
) -> tuple[tuple[Answer, ...], tuple[Broken, ...]]:
    """What `convert` makes of the answers of a post at their `places`, and those that do not fit."""
    read = [converted(where, value, convert) for where, value in places]
    broken = (answer._replace(unit="answer") for answer in read if isinstance(answer, Broken))
    return tuple(answer for answer in read if isinstance(answer, Answer)), tuple(broken)


def elements(source: Source) -> Iterator[Element | Broken]:
    """The values of the file, each with its place: ``name[index]``, ``name:line``, or ``name`` for a single one.

    A list is read up to the first value that cannot be read: the beginning of the next one is not known. A value that
    is too long is skipped, and the next one is read.
    """
    begin = _skip(source.text, 0)
    if source.text.startswith("[", begin):
        yield from _list(source)
    elif source.name.lower().endswith((".jsonl", ".ndjson")) or _SEVERAL_OBJECTS.match(source.text, begin):
        # Only a line feed ends a line: U+2028 and its like are part of what people wrote.
        for number, line in enumerate(_lines(source.text), start=1):
            if line.strip():
                yield _only_value(line, f"{source.name}:{number}")
    else:
        yield _only_value(source.text, source.name)


def _only_value(text: str, where: str) -> Element | Broken:
    """A text as one value."""
    try:
        if len(text) > MAX_RECORD_CHARS and len(text.strip()) > MAX_RECORD_CHARS:
            raise _TooLong(0)
        value, end = _value(text, _skip(text, 0))
    except Unfit as unfit:
        return Broken(where, unfit.reason, unfit.detail)
    if _skip(text, end) < len(text):
        return Broken(where, "bad_json", f"text follows the value at character {end}")
    return Element(where, value)


def _list(source: Source) -> Iterator[Element | Broken]:
    text = source.text
    at = _skip(text, _skip(text, 0) + 1)
    index, mark = 0, ","
    if text[at : at + 1] == "]":
        at, mark = at + 1, "]"
    while mark == ",":
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
    where = f"{source.name}[{index}]"
    if not mark:
        yield Broken(where, "bad_json", "the file ends within the list")
    elif mark != "]":
        yield Broken(where, "bad_json", f"no comma before character {at}")
    elif _skip(text, at) < len(text):
        yield Broken(where, "bad_json", f"text follows the list at character {at}")


def _lines(text: str) -> Iterator[str]:
    at = 0
    while (end := text.find("\n", at)) >= 0:
        yield text[at:end]
        at = end + 1
    yield text[at:]


def _value(text: str, at: int) -> tuple[object, int]:
    """The value that begins at `at`, and its end. No more is decoded than a record may have: decoded, a text takes many
    times the memory.
    """
    part = text[at : at + _NEAR]
    with suppress(ValueError, RecursionError):  # of a part that is cut off, an error says nothing
        value, length = _DECODER.raw_decode(part)
        if length < len(part) or at + length == len(text):
            return value, at + length
    part = text[at : at + MAX_RECORD_CHARS + 1]
    try:
        value, length = _DECODER.raw_decode(part)
    except (ValueError, RecursionError) as error:
        cut_off = at + len(part) < len(text) and _end(text, at, at + MAX_RECORD_CHARS) is None
        raise _TooLong(at) if cut_off else _bad_json(error, text, at) from error
    if length > MAX_RECORD_CHARS:
        raise _TooLong(at)
    return value, at + length


def _bad_json(error: ValueError | RecursionError, text: str, at: int) -> Unfit:
    if isinstance(error, json.JSONDecodeError):
        place = at + error.pos
        line, column = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
        return Unfit("bad_json", f"{error.msg.rstrip(': ')} at line {line}, column {column}")
    what = "nested too deeply" if isinstance(error, RecursionError) else "a number too long to read"
    return Unfit("bad_json", f"{what}, after character {at}")


def _end(text: str, at: int, last: int) -> int | None:
    """Where the value at `at` ends, by its brackets and quotation marks alone; None if that is not before `last`."""
    depth = 0
    for mark in _MARKS.finditer(text, at, last):
        if mark[0][0] == '"' and mark["closed"] is None:
            return None
        depth += _DEPTH.get(mark[0], 0)
        if depth <= 0:
            return mark.end()
    return None


def _skip(text: str, at: int) -> int:
    """`at`, or the first character after it that is no white space."""
    space = _SPACE.match(text, at)
    return space.end() if space else at
