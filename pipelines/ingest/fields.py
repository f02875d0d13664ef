"""Fields of a record, taken out with their types checked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_NAME = re.compile(r"[\w.\-]{1,40}", re.ASCII)


class Unfit(Exception):
    """Raised by readers for a record that cannot be read; never leaves `pipelines.ingest`."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(detail)


def shown(name: object) -> str:
    """A key or a role name for a message: whatever might be a person's words is only measured."""
    text = str(name)
    return f"`{text}`" if _NAME.fullmatch(text) else f"a name of {len(text)} characters"


def kind(value: object) -> str:  # noqa: PLR0911 - a type, a word
    """The JSON type of `value`, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class Node:
    """An object of a record and the path to it.

    A method takes a key and the other names that sets use for it; it raises Unfit where the field is missing, null, or
    of another type, unless it says otherwise.
    """

    value: dict[str, Any]
    path: str = ""

    def has(self, *keys: str) -> bool:
        """Whether one of `keys` is there and not null."""
        return any(self.value.get(key) is not None for key in keys)

    def needs(self, *keys: str) -> None:
        """Raises Unfit ("wrong_form") for a record without one of `keys`: it is of another form altogether."""
        missing = [key for key in keys if key not in self.value]
        if missing:
            has = ", ".join(shown(key) for key in list(self.value)[:12]) or "nothing"
            raise Unfit("wrong_form", f"needs {', '.join(map(shown, missing))}; has {has}")

    def text(self, *keys: str) -> str:
        """The text as it stands."""
        key, value = self._first(keys)
        if not isinstance(value, str):
            raise self._wrong(key, value, "a text")
        return value

    def maybe_text(self, *keys: str) -> str | None:
        """The text, or None where there is none: missing, null, or empty."""
        return (self.text(*keys).strip() or None) if self.has(*keys) else None

    def name(self, *keys: str) -> str:
        """A text or a whole number, as a text: an id or a label."""
        key, value = self._first(keys)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise self._wrong(key, value, "a name or a whole number")
        return str(value).strip()

    def maybe_name(self, *keys: str) -> str | None:
        """The name, or None where there is none: missing, null, or empty."""
        return self.name(*keys) if self.has(*keys) and self._first(keys)[1] != "" else None

    def number(self, *keys: str) -> int:
        """A whole number, or the text of one."""
        key, value = self._first(keys)
        if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,18}\s*", value):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 63:
            raise self._wrong(key, value, "a whole number")
        return value

    def maybe_number(self, *keys: str) -> int | None:
        """The number, or None where there is none: missing, null, or empty."""
        return self.number(*keys) if self.has(*keys) and self._first(keys)[1] != "" else None

    def items(self, *keys: str) -> list[Any]:
        """The entries of a list."""
        key, value = self._first(keys)
        if not isinstance(value, list):
            raise self._wrong(key, value, "a list")
        return value

    def nodes(self, *keys: str) -> list["Node"]:
        """The objects of a list. An entry that is no object is an Unfit record."""
        key, _ = self._first(keys)
        return [node(value, f"{self.path}{key}[{i}]") for i, value in enumerate(self.items(*keys))]

    def node(self, *keys: str) -> "Node":
        """An object within this one."""
        key, value = self._first(keys)
        return node(value, f"{self.path}{key}")

    def names(self, *keys: str) -> tuple[str, ...]:
        """A name, or a list of names; () where there is none."""
        if not self.has(*keys):
            return ()
        key, value = self._first(keys)
        values = value if isinstance(value, list) else [value]
        for entry in values:
            if not isinstance(entry, str):
                raise self._wrong(key, entry, "a name")
        return tuple(entry.strip() for entry in values if entry.strip())

    def _first(self, keys: tuple[str, ...]) -> tuple[str, Any]:
        for key in keys:
            if self.value.get(key) is not None:
                return key, self.value[key]
        for key in keys:
            if key in self.value:
                return key, None
        raise Unfit("missing_field", f"`{self.path}{keys[0]}` is missing")

    def _wrong(self, key: str, value: object, wanted: str) -> Unfit:
        return Unfit("wrong_type", f"`{self.path}{key}` is {kind(value)}, not {wanted}")


def node(value: object, path: str) -> Node:
    """`value` as a Node at `path`; raises Unfit where it is no object."""
    if not isinstance(value, dict):
        raise Unfit("wrong_type", f"`{path}` is {kind(value)}, not an object")
    return Node(value, f"{path}.")


def flattened(value: object, name: str) -> Iterator[tuple[str, str]]:
    """The leaves of `value` with dotted names, as attributes; nulls and empty texts are left out."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from flattened(inner, f"{name}.{key}" if name else str(key))
        case list():
            for i, inner in enumerate(value):
                yield from flattened(inner, f"{name}.{i}")
        case None | "":
            return
        case bool():
            yield name, "true" if value else "false"
        case _:
            yield name, str(value)


def rest(record: Node, *used: str) -> tuple[tuple[str, str], ...]:
    """The fields of `record` that no column takes, as attributes."""
    return tuple(flattened({key: value for key, value in record.value.items() if key not in used}, ""))
