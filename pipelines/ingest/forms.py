"""Records of a source as pydantic models, and what a drop says of one that does not fit.

A reader declares a `Form` for each shape of its source; `fill` reads a value into it, or raises Unfit, which names the
field. It holds keys and types only, never what a person wrote.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

_KEY = re.compile(r"[\w.\-]{1,40}", re.ASCII)
_WHOLE_NUMBER = re.compile(r"\s*-?[0-9]{1,18}\s*")
_WANTED = {"string_type": "a text", "list_type": "a list", "dict_type": "an object", "model_type": "an object"}


class Unfit(ValueError):
    """Raised by readers for a record that cannot be read; never leaves `pipelines.ingest`.

    A validator of a field raises it, too: there `detail` goes on after the field's name.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(detail)


class Form(BaseModel):
    """Base of the shapes of records. Types are strict. Fields without a name here are ignored, or kept as `extra`."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class AliasedForm(Form):
    """A form whose fields have several names: the first that is not null counts, for some files write them all."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: object) -> object:
        return {key: inner for key, inner in value.items() if inner is not None} if isinstance(value, dict) else value


FormT = TypeVar("FormT", bound=Form)


def fill(form: type[FormT], value: object, path: str | None = None, keys: Mapping[str, str] | None = None) -> FormT:
    """`value` as a `form`; raises Unfit for the first field that does not fit.

    `path` is where `value` stands within its record, None for a whole one, which is of another form altogether where it
    lacks a field, itself or in the first item of a list. `keys` are the source's own names of the fields.
    """
    try:
        return form.model_validate(value)
    except ValidationError as failure:
        first, *others = failure.errors(include_url=False)
        if path is None and first["type"] == "missing" and first["loc"][1:-1] in ((), (0,)):
            missing = [one["loc"][-1] for one in (first, *others) if one["type"] == "missing"]
            raise Unfit("wrong_form", f"needs {_shown(missing)}; has {_shown(first['input'])}") from failure
        raise _unfit(first, path or "", keys or {}) from failure


def _unfit(one: ErrorDetails, path: str, keys: Mapping[str, str]) -> Unfit:
    place = path
    for i, part in enumerate(one["loc"]):
        name = keys.get(str(part), part) if i == 0 else part
        place += f"[{name}]" if isinstance(name, int) else f".{name}" if place else name
    match one["type"]:
        case "missing":
            return Unfit("missing_field", f"`{place}` is missing")
        case "value_error" if isinstance(cause := one["ctx"]["error"], Unfit):
            return Unfit(cause.reason, f"`{place}` {cause.detail}")
        case "string_unicode":
            return Unfit("bad_unicode", "a lone surrogate in a key")
        case wrong if wrong in _WANTED:
            return Unfit("wrong_type", f"`{place}` is {kind(one['input'])}, not {_WANTED[wrong]}")
        case _:
            return Unfit("wrong_value", f"`{place}`: {one['msg']}")


def _shown(keys: Any) -> str:
    return ", ".join(shown(key) for key in list(keys)[:12]) or "nothing"


def shown(name: object) -> str:
    """A key or a role name for a message: what might be a person's words is only measured."""
    text = str(name)
    return f"`{text}`" if _KEY.fullmatch(text) else f"a name of {len(text)} characters"


def kind(value: object) -> str:
    """The JSON type of `value`, in words."""
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "an object",
    }
    return "null" if value is None else names.get(type(value), f"a {type(value).__name__}")


def flattened(value: object, name: str = "") -> Iterator[tuple[str, str]]:
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


def stripped(value: object) -> object:
    """A text without white space around it; null where nothing is left."""
    return (value.strip() or None) if isinstance(value, str) else value


def _name(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise Unfit("wrong_type", f"is {kind(value)}, not a name or a whole number")
    return str(value).strip()


def _number(value: object) -> int:
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 63:
        raise Unfit("wrong_type", f"is {kind(value)}, not a whole number")
    return value


def _names(value: object) -> tuple[str, ...]:
    names = []
    for entry in value if isinstance(value, list) else [] if value is None else [value]:
        if not isinstance(entry, str):
            raise Unfit("wrong_type", f"is {kind(entry)}, not a name")
        names.append(entry.strip())
    return tuple(filter(None, names))


def _null_if_empty(value: object) -> object:
    return None if value == "" else value


OptionalText = Annotated[str | None, BeforeValidator(stripped)]
# An id or a label: a text or a whole number, as a text.
Name = Annotated[str, BeforeValidator(_name)]
OptionalName = Annotated[Name | None, BeforeValidator(_null_if_empty)]
# A whole number, or the text of one.
Number = Annotated[int, BeforeValidator(_number)]
OptionalNumber = Annotated[Number | None, BeforeValidator(_null_if_empty)]
# The seeker's rating of the help so far.
Rating = Annotated[Annotated[Number, Field(ge=1, le=5)] | None, BeforeValidator(_null_if_empty)]
# A name or a list of names.
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
