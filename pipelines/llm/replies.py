"""Reading the text of a reply: strictly, for a post may have talked the model into anything.

What a task accepts is one JSON object, or our tags, and nothing around them. Whatever else comes is an InvalidReply.
"""

import json
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import AfterValidator, BaseModel, GetPydanticSchema
from pydantic_core import core_schema

from pipelines.llm.questions import InvalidReply

Record = TypeVar("Record", bound="Verdict")

# A reason is a sentence or two; ours. What is longer than this is no reason but an essay, or the post once more.
_LONGEST_REASON = 600


def _reason(text: str) -> str:
    if not (stripped := text.strip()):
        raise ValueError("may not be empty")
    if len(stripped) > _LONGEST_REASON:
        raise ValueError(f"may not be longer than {_LONGEST_REASON} characters")
    return stripped


Reason = Annotated[str, AfterValidator(_reason)]


def one_of(*words: str) -> GetPydanticSchema:
    """Metadata of a string field: only these words may stand there: an enum for structured output."""
    return GetPydanticSchema(lambda *_: core_schema.literal_schema(list(words)))


class Verdict(BaseModel, frozen=True, extra="forbid", strict=True):
    """Base of what is asked for as JSON: every field, no other, none of another type."""


def read_json(text: str, record: type[Record]) -> Record:
    """The one JSON object that a reply is. Raises InvalidReply, and ValidationError for one of another form."""
    try:
        value = json.loads(writable(text), object_pairs_hook=_each_once, parse_constant=_no_number)
        writable(json.dumps(value, ensure_ascii=False))  # half a surrogate pair may stand there as an escape
    except InvalidReply:
        raise
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, and brackets without end
        sentence = "the reply must be one JSON object, without a code fence or words around it"
        raise InvalidReply("not_json", sentence) from error
    return record.model_validate(value)


def writable(text: str) -> str:
    """`text`. Raises InvalidReply where it is no Unicode (a lone surrogate), which no table can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidReply("not_unicode", "the reply holds half a character") from error
    return text


def require_length(section: str, text: str, characters: range) -> None:
    """Raises InvalidReply for a section that is much too short or much too long."""
    if len(text) not in characters:
        raise InvalidReply(
            f"length:{section}",
            f"{section} has {len(text)} characters; it must have {characters.start} to {characters.stop - 1}",
        )


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise InvalidReply("doubled_name", "a name stands in the object twice; each may stand there once")
    return fields


def _no_number(_: str) -> NoReturn:
    raise InvalidReply("not_a_number", "NaN and Infinity are no JSON")
